import { ChevronRightIcon } from "../components/icons";
import { Markdown } from "../markdown/Markdown";
import { duration } from "../text/format";

type Props = {
  text: string;
  streaming: boolean;
  /** How long the thought took; null when that was not seen. */
  milliseconds: number | null;
};

/** What the model thought before it answered, folded away. */
export function Thinking({ text, streaming, milliseconds }: Props) {
  const title = streaming
    ? "Thinking"
    : milliseconds === null
      ? "Thoughts"
      : `Thought for ${duration(milliseconds)}`;
  return (
    <details className="thinking">
      <summary className={streaming ? "thinking-title thinking-live" : "thinking-title"}>
        <ChevronRightIcon size={14} aria-hidden />
        <span>{title}</span>
      </summary>
      <div className="thinking-text">
        <Markdown text={text} streaming={streaming} />
      </div>
    </details>
  );
}

import { PerchMark } from "../components/icons";
import type { ModelStatus } from "../ipc/bindings";
import { useAppState } from "../state/app-state";

const SUGGESTIONS = [
  "Explain how a kingfisher dives without a splash",
  "Write a haiku about an early morning",
  "Turn “42, 17, 8” into a small Markdown table",
];

type Props = { model: ModelStatus | null; onPick: (text: string) => void };

/** What stands where a conversation has not begun. */
export function EmptyState({ model, onPick }: Props) {
  const { models } = useAppState();
  if (models.length === 0) {
    return (
      <div className="empty">
        <PerchMark size={80} />
        <h2>Bring a model to Perch</h2>
        <p>Drop a model folder, or a file inside one, anywhere on this window. It stays where it is.</p>
        <p className="empty-fine">Hugging Face and MLX folders with safetensors files work.</p>
      </div>
    );
  }
  if (model === null || model.state.kind === "missing") {
    return (
      <div className="empty">
        <PerchMark size={80} />
        <h2>Choose a model</h2>
        <p>Pick one at the top left, or drop another model folder on this window.</p>
      </div>
    );
  }
  return (
    <div className="empty">
      <PerchMark size={80} />
      <h2>What shall we think about?</h2>
      <p>Everything stays on this computer.</p>
      <ul className="suggestions">
        {SUGGESTIONS.map((text) => (
          <li key={text}>
            <button type="button" onClick={() => onPick(text)}>
              {text}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

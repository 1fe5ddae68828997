import { Notice } from "../components/Notice";
import type { Message } from "../ipc/bindings";

type Props = {
  message: Message;
  /** Asks the same again; null where that would not continue the conversation. */
  onRetry: (() => void) | null;
};

/** How a reply ended, when it did not end by itself. */
export function ReplyEnd({ message, onRetry }: Props) {
  const retry = onRetry && (
    <button type="button" className="text-button" onClick={onRetry}>
      Try again
    </button>
  );
  switch (message.state) {
    case "failed":
      return <Notice error={message.error ?? { message: "The reply failed.", hint: null }} action={retry} />;
    case "stopped":
      return <p className="ending">Stopped {retry}</p>;
    case "interrupted":
      return <p className="ending">Perch closed before this reply was finished. {retry}</p>;
    default:
      return null;
  }
}

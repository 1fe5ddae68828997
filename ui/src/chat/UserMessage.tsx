import { memo } from "react";
import { CopyButton } from "../components/CopyButton";
import type { Message } from "../ipc/bindings";

export const UserMessage = memo(function UserMessage({ message }: { message: Message }) {
  return (
    <article className="message user-message" aria-label="You">
      <div className="bubble" dir="auto">
        {message.text}
      </div>
      <CopyButton text={message.text} label="Copy message" className="message-copy" />
    </article>
  );
});

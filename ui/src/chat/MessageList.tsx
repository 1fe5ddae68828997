import { ArrowDownIcon } from "../components/icons";
import type { Message } from "../ipc/bindings";
import { AssistantMessage } from "./AssistantMessage";
import { UserMessage } from "./UserMessage";
import { useStickToBottom } from "./useStickToBottom";

type Props = { messages: Message[]; onRetry: (text: string) => void };

export function MessageList({ messages, onRetry }: Props) {
  const { viewport, content, stuck, jump } = useStickToBottom(messages.length);
  return (
    <main className="messages">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the conversation must be scrollable by keyboard. */}
      <div ref={viewport} className="messages-scroll" tabIndex={0} role="log" aria-label="Conversation">
        <div ref={content} className="messages-content">
          {messages.map((message, place) =>
            message.role === "user" ? (
              <UserMessage key={message.id} message={message} />
            ) : (
              <AssistantMessage
                key={message.id}
                message={message}
                last={place === messages.length - 1}
                onRetry={() => {
                  const asked = messages[place - 1];
                  if (asked) onRetry(asked.text);
                }}
              />
            ),
          )}
        </div>
      </div>
      {!stuck && (
        <button
          type="button"
          className="jump"
          aria-label="Jump to latest"
          title="Jump to latest"
          onClick={jump}
        >
          <ArrowDownIcon size={16} aria-hidden />
        </button>
      )}
    </main>
  );
}

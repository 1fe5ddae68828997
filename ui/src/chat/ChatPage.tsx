import { useEffect, useMemo } from "react";
import type { PageName } from "../App";
import { IconButton } from "../components/IconButton";
import { HistoryIcon, NewChatIcon, SettingsIcon } from "../components/icons";
import { Notice } from "../components/Notice";
import { shortcut } from "../components/shortcut";
import { useTask } from "../components/useTask";
import { useBackend } from "../ipc/backend";
import type { Message } from "../ipc/bindings";
import { selectedModel, useAppState } from "../state/app-state";
import { useConversation } from "../state/conversation";
import { useReplies } from "../state/replies";
import { useStore } from "../state/store";
import { Composer } from "./Composer";
import { EmptyState } from "./EmptyState";
import { MessageList } from "./MessageList";
import { ModelPicker } from "./ModelPicker";
import "./chat.css";

type Props = {
  /** The open conversation; null for one that has not begun. */
  conversation: string | null;
  onStarted: (id: string) => void;
  onNewChat: () => void;
  onGo: (page: PageName) => void;
};

export function ChatPage({ conversation, onStarted, onNewChat, onGo }: Props) {
  const backend = useBackend();
  const state = useAppState();
  const summary = state.conversations.find(({ id }) => id === conversation);
  const { messages, error, send } = useConversation(conversation, summary?.replying ?? null, onStarted);
  const last = messages.at(-1);
  const replying = useUnfinished(last) ? (last?.id ?? null) : null;
  const sending = useTask();
  const model = selectedModel(state);

  const stop = () => {
    if (replying !== null) void sending.run(() => backend.stopReply(replying));
  };

  useEffect(() => {
    if (replying === null) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
      event.preventDefault();
      void sending.run(() => backend.stopReply(replying));
    };
    // Before the window's own listener, for which Esc means going away.
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [backend, replying, sending.run]);

  /** Sends `text`; false when it could not be sent. */
  const submit = async (text: string): Promise<boolean> => {
    let sent = false;
    await sending.run(async () => {
      await send(text);
      sent = true;
    });
    return sent;
  };

  return (
    <div className="chat">
      <header className="bar">
        <h1 className="visually-hidden">{summary?.title ?? "New chat"}</h1>
        <ModelPicker />
        <span className="bar-space" />
        <IconButton icon={NewChatIcon} label="New chat" shortcut={shortcut("N")} onClick={onNewChat} />
        <IconButton icon={HistoryIcon} label="History" onClick={() => onGo("history")} />
        <IconButton
          icon={SettingsIcon}
          label="Settings"
          shortcut={shortcut(",")}
          onClick={() => onGo("settings")}
        />
      </header>
      {messages.length > 0 ? (
        <MessageList key={`messages of ${conversation}`} messages={messages} onRetry={submit} />
      ) : (
        <main className="chat-empty">
          {error ? (
            <Notice error={error} />
          ) : (
            conversation === null && <EmptyState model={model} onPick={submit} />
          )}
        </main>
      )}
      {sending.error && (
        <div className="chat-notice">
          <Notice error={sending.error} />
        </div>
      )}
      <Composer
        key={`composer of ${conversation}`}
        conversation={conversation}
        model={model}
        hasModels={state.models.length > 0}
        replying={replying !== null}
        busy={sending.running}
        onSend={submit}
        onStop={stop}
      />
    </div>
  );
}

/** Whether `message` is a reply that is still being written. */
function useUnfinished(message: Message | undefined): boolean {
  const replies = useReplies();
  const followed = useMemo(() => {
    if (message?.role !== "assistant") return NOT_A_REPLY;
    const reply = replies.of(message);
    return { get: () => reply.get().phase.kind !== "finished", subscribe: reply.subscribe };
  }, [replies, message]);
  return useStore(followed);
}

const NOT_A_REPLY = { get: () => false, subscribe: () => () => {} };

import { type KeyboardEvent, useState } from "react";
import { IconButton } from "../components/IconButton";
import { DeleteIcon, RenameIcon } from "../components/icons";
import { Notice } from "../components/Notice";
import { type Task, useTask } from "../components/useTask";
import { useBackend } from "../ipc/backend";
import type { ConversationSummary } from "../ipc/bindings";
import { shortTime } from "../text/format";

type Props = { conversation: ConversationSummary; current: boolean; now: number; onOpen: () => void };

/** One conversation: open it, rename it in place, or delete it after a second word. */
export function HistoryRow({ conversation, current, now, onOpen }: Props) {
  const [mode, setMode] = useState<"shown" | "renaming" | "deleting">("shown");
  const task = useTask();
  const { title } = conversation;

  return (
    <li className={current ? "history-row history-current" : "history-row"}>
      {mode === "shown" && (
        <>
          <button type="button" className="history-open" aria-current={current || undefined} onClick={onOpen}>
            <span className="history-title" dir="auto">
              {title}
            </span>
            {conversation.replying !== null ? (
              <span className="history-replying">Replying</span>
            ) : (
              <span className="history-time">{shortTime(conversation.updatedAt, now)}</span>
            )}
          </button>
          <span className="history-actions">
            <IconButton icon={RenameIcon} label={`Rename “${title}”`} onClick={() => setMode("renaming")} />
            <IconButton icon={DeleteIcon} label={`Delete “${title}”`} onClick={() => setMode("deleting")} />
          </span>
        </>
      )}
      {mode === "renaming" && (
        <Rename conversation={conversation} task={task} onDone={() => setMode("shown")} />
      )}
      {mode === "deleting" && (
        <Delete conversation={conversation} task={task} onDone={() => setMode("shown")} />
      )}
      {task.error && <Notice error={task.error} />}
    </li>
  );
}

type ModeProps = { conversation: ConversationSummary; task: Task; onDone: () => void };

function Rename({ conversation, task, onDone }: ModeProps) {
  const backend = useBackend();
  const [title, setTitle] = useState(conversation.title);
  const save = () => {
    const wanted = title.trim();
    onDone();
    if (wanted === "" || wanted === conversation.title) return;
    void task.run(() => backend.renameConversation(conversation.id, wanted));
  };
  return (
    <form
      className="history-rename"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <input
        aria-label="Title"
        value={title}
        // biome-ignore lint/a11y/noAutofocus: the person asked to type here.
        autoFocus
        onFocus={(event) => event.target.select()}
        onChange={(event) => setTitle(event.target.value)}
        onKeyDown={(event) => onEscape(event, onDone)}
        onBlur={save}
      />
    </form>
  );
}

function Delete({ conversation, task, onDone }: ModeProps) {
  const backend = useBackend();
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Esc belongs to the buttons inside.
    <div className="history-delete" onKeyDown={(event) => onEscape(event, onDone)}>
      <span>Delete for good?</span>
      <button
        type="button"
        className="text-button danger"
        // biome-ignore lint/a11y/noAutofocus: the question follows from the button that was there.
        autoFocus
        disabled={task.running}
        onClick={() => task.run(() => backend.deleteConversation(conversation.id))}
      >
        Delete
      </button>
      <button type="button" className="text-button" onClick={onDone}>
        Keep
      </button>
    </div>
  );
}

function onEscape(event: KeyboardEvent, then: () => void) {
  if (event.key !== "Escape") return;
  event.preventDefault();
  then();
}

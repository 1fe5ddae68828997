import { type KeyboardEvent, useEffect, useLayoutEffect, useRef } from "react";
import { SendIcon } from "../components/icons";
import type { ModelStatus } from "../ipc/bindings";
import { useDraft } from "../state/drafts";

type Props = {
  conversation: string | null;
  model: ModelStatus | null;
  hasModels: boolean;
  replying: boolean;
  /** Whether a message is on its way to the shell. */
  busy: boolean;
  /** Resolves to false when the text could not be sent and is to be kept. */
  onSend: (text: string) => Promise<boolean>;
  onStop: () => void;
};

export function Composer({ conversation, model, hasModels, replying, busy, onSend, onStop }: Props) {
  const [draft, setDraft] = useDraft(conversation);
  const field = useRef<HTMLTextAreaElement>(null);
  const reason = whyDisabled(model, hasModels);

  useGrowing(field, draft);
  useFocusOnShow(field);

  const submit = async () => {
    const text = draft.trim();
    if (text === "" || reason !== null || replying || busy) return;
    // A new conversation replaces this composer, so its draft goes first and comes back on failure.
    setDraft("");
    if (!(await onSend(text))) setDraft(draft);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // While an input method composes, Enter chooses a word; Safari reports it as key code 229.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void submit();
  };

  return (
    <form
      className="composer"
      aria-label="Write a message"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div className="composer-box">
        <textarea
          ref={field}
          rows={1}
          dir="auto"
          aria-label="Message"
          placeholder={reason ?? `Message ${model?.name ?? ""}`}
          value={draft}
          disabled={reason !== null}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={onKeyDown}
        />
        {replying ? (
          <button
            type="button"
            className="round-button stop"
            aria-label="Stop"
            title="Stop (Esc)"
            onClick={onStop}
          >
            <span className="stop-square" />
          </button>
        ) : (
          <button
            type="submit"
            className="round-button"
            aria-label="Send"
            title="Send (Return)"
            disabled={reason !== null || busy || draft.trim() === ""}
          >
            <SendIcon size={16} strokeWidth={2.5} aria-hidden />
          </button>
        )}
      </div>
    </form>
  );
}

function whyDisabled(model: ModelStatus | null, hasModels: boolean): string | null {
  if (!hasModels) return "Drop a model folder here first";
  if (model === null) return "Choose a model above first";
  if (model.state.kind === "missing") return "This model’s folder is gone";
  return null;
}

/** Lets the field grow with its text; the style sheet caps it. */
function useGrowing(field: React.RefObject<HTMLTextAreaElement | null>, text: string) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows from the text.
  useLayoutEffect(() => {
    const area = field.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  }, [field, text]);
}

/** Focuses the field at once and whenever the window is shown again. */
function useFocusOnShow(field: React.RefObject<HTMLTextAreaElement | null>) {
  useEffect(() => {
    const focus = () => {
      // Where the person had put the focus elsewhere, it stays there.
      if (document.activeElement === document.body || document.activeElement === null) field.current?.focus();
    };
    focus();
    window.addEventListener("focus", focus);
    return () => window.removeEventListener("focus", focus);
  }, [field]);
}

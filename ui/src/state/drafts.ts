import { useCallback, useState } from "react";

/** Text that was typed but not sent, kept so that closing the window loses nothing. */
export function readDraft(conversation: string | null): string {
  return localStorage.getItem(key(conversation)) ?? "";
}

export function writeDraft(conversation: string | null, text: string): void {
  if (text === "") localStorage.removeItem(key(conversation));
  else localStorage.setItem(key(conversation), text);
}

function key(conversation: string | null): string {
  return `perch.draft.${conversation ?? "new"}`;
}

/** The draft of a conversation; mount anew (by `key`) for another conversation. */
export function useDraft(conversation: string | null): [string, (text: string) => void] {
  const [draft, setDraft] = useState(() => readDraft(conversation));
  const update = useCallback(
    (text: string) => {
      writeDraft(conversation, text);
      setDraft(text);
    },
    [conversation],
  );
  return [draft, update];
}

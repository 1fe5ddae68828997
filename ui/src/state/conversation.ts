import { useCallback, useEffect, useState } from "react";
import { BackendError, useBackend } from "../ipc/backend";
import type { Message } from "../ipc/bindings";

type Loaded = { id: string | null; messages: Message[]; error: BackendError | null };

const NOTHING: Message[] = [];

export type OpenConversation = {
  messages: Message[];
  /** Why the conversation could not be read. */
  error: BackendError | null;
  /** Saves the message and begins the reply; rejects with a `BackendError`. */
  send(text: string): Promise<void>;
};

/**
 * The messages of conversation `id`, or of a new one.
 *
 * It reads them again whenever a reply begins or ends, whoever asked for it, so that the page stays in
 * step with what the shell has saved. `onStarted` is told the id that a new conversation was given.
 */
export function useConversation(
  id: string | null,
  replying: string | null,
  onStarted: (id: string) => void,
): OpenConversation {
  const backend = useBackend();
  const [loaded, setLoaded] = useState<Loaded>({ id: null, messages: NOTHING, error: null });

  // biome-ignore lint/correctness/useExhaustiveDependencies: `replying` is the signal to read again.
  useEffect(() => {
    if (id === null) {
      setLoaded({ id: null, messages: NOTHING, error: null });
      return;
    }
    let current = true;
    backend.conversation(id).then(
      ({ messages }) => current && setLoaded({ id, messages, error: null }),
      (thrown) => current && setLoaded({ id, messages: NOTHING, error: BackendError.from(thrown) }),
    );
    return () => {
      current = false;
    };
  }, [backend, id, replying]);

  const send = useCallback(
    async (text: string) => {
      const sent = await backend.sendMessage(id, text).catch((thrown) => {
        throw BackendError.from(thrown);
      });
      const added = [message(sent.message, "user", text), message(sent.reply, "assistant", "")];
      setLoaded((before) => ({
        id: sent.conversation,
        messages: [...before.messages.filter(({ id }) => !added.some((one) => one.id === id)), ...added],
        error: null,
      }));
      if (id === null) onStarted(sent.conversation);
    },
    [backend, id, onStarted],
  );

  const shown = loaded.id === id ? loaded : { messages: NOTHING, error: null };
  return { messages: shown.messages, error: shown.error, send };
}

function message(id: string, role: Message["role"], text: string): Message {
  return {
    id,
    role,
    text,
    state: role === "user" ? "complete" : "streaming",
    error: null,
    model: null,
    stats: null,
    createdAt: Date.now(),
  };
}

import { useCallback, useEffect, useMemo, useState } from "react";
import { ChatPage } from "./chat/ChatPage";
import { Notice } from "./components/Notice";
import { isCommand } from "./components/shortcut";
import { DropLayer } from "./drop/DropLayer";
import { HistoryPage } from "./history/HistoryPage";
import { type Backend, BackendContext } from "./ipc/backend";
import { SettingsPage } from "./settings/SettingsPage";
import { AppStateContext, followAppState } from "./state/app-state";
import { createReplies, RepliesContext } from "./state/replies";
import { useStore } from "./state/store";

export type PageName = "chat" | "history" | "settings";

const OPEN_CONVERSATION = "perch.conversation";

export function App({ backend }: { backend: Backend }) {
  const loading = useStore(useMemo(() => followAppState(backend), [backend]));
  const replies = useMemo(() => createReplies(backend), [backend]);
  const ready = loading.kind === "ready";

  // Tests from outside wait for this before they touch anything.
  useEffect(() => {
    if (ready) document.body.dataset.ready = "1";
  }, [ready]);

  if (loading.kind === "loading") return null;
  if (loading.kind === "failed") {
    return (
      <main className="fatal">
        <Notice error={loading.error} />
      </main>
    );
  }
  return (
    <BackendContext value={backend}>
      <RepliesContext value={replies}>
        <AppStateContext value={loading.state}>
          <Window backend={backend} known={loading.state.conversations.map(({ id }) => id)} />
        </AppStateContext>
      </RepliesContext>
    </BackendContext>
  );
}

/** The pages, and the keys that lead from one to another. `known` are the conversations that exist. */
function Window({ backend, known }: { backend: Backend; known: string[] }) {
  const [page, setPage] = useState<PageName>("chat");
  const [wanted, setWanted] = useState(() => localStorage.getItem(OPEN_CONVERSATION));
  // A conversation that was just begun may come before the snapshot that lists it.
  const [begun, setBegun] = useState<string | null>(null);
  const conversation = wanted !== null && (known.includes(wanted) || wanted === begun) ? wanted : null;

  const open = useCallback((id: string | null) => {
    if (id === null) localStorage.removeItem(OPEN_CONVERSATION);
    else localStorage.setItem(OPEN_CONVERSATION, id);
    setWanted(id);
    setPage("chat");
  }, []);
  const start = useCallback(
    (id: string) => {
      setBegun(id);
      open(id);
    },
    [open],
  );

  useEffect(
    () =>
      backend.onPageRequested((requested) => {
        if (requested === "newChat") open(null);
        else setPage("settings");
      }),
    [backend, open],
  );

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return;
      if (event.key === "Escape") {
        if (page === "chat") void backend.hideWindow();
        else setPage("chat");
      } else if (isCommand(event) && event.key.toLowerCase() === "n") open(null);
      else if (isCommand(event) && event.key === ",") setPage("settings");
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [backend, open, page]);

  return (
    <>
      {page === "chat" && (
        <ChatPage conversation={conversation} onStarted={start} onNewChat={() => open(null)} onGo={setPage} />
      )}
      {page === "history" && (
        <HistoryPage current={conversation} onOpen={open} onBack={() => setPage("chat")} />
      )}
      {page === "settings" && <SettingsPage onBack={() => setPage("chat")} />}
      <DropLayer onAdded={() => setPage("chat")} />
    </>
  );
}

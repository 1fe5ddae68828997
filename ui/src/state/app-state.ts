import { createContext, useContext } from "react";
import { type Backend, BackendError } from "../ipc/backend";
import type { AppState, ModelStatus } from "../ipc/bindings";
import { createStore, type Store } from "./store";

export type Loading =
  | { kind: "loading" }
  | { kind: "ready"; state: AppState }
  | { kind: "failed"; error: BackendError };

/** Follows the snapshot that the shell sends whole on every change. */
export function followAppState(backend: Backend): Store<Loading> {
  const store = createStore<Loading>({ kind: "loading" });
  backend.onStateChanged((state) => store.set({ kind: "ready", state }));
  backend.appState().then(
    (state) => {
      // A change that came meanwhile is newer than this answer.
      if (store.get().kind === "loading") store.set({ kind: "ready", state });
    },
    (thrown) => {
      if (store.get().kind === "loading") store.set({ kind: "failed", error: BackendError.from(thrown) });
    },
  );
  return store;
}

export const AppStateContext = createContext<AppState | null>(null);

export function useAppState(): AppState {
  const state = useContext(AppStateContext);
  if (!state) throw new Error("useAppState needs an AppStateContext around it");
  return state;
}

export function selectedModel(state: AppState): ModelStatus | null {
  return state.models.find((model) => model.id === state.selectedModel) ?? null;
}

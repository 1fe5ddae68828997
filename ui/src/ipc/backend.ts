import { createContext, useContext } from "react";
import type {
  AppError,
  AppState,
  Conversation,
  EndpointState,
  Page,
  ReplyEvent,
  SentMessage,
  Verdict,
} from "./bindings";

/** Something was dragged over or dropped on the window. */
export type DropEvent = { kind: "over" } | { kind: "leave" } | { kind: "drop"; paths: string[] };

/** Stops a subscription. */
export type Unsubscribe = () => void;

/**
 * Everything that the UI can ask of, or hear from, the world outside it.
 *
 * No other module talks to the shell, so the same UI runs in the app, in a browser and in tests.
 * Every promise rejects with a `BackendError`.
 */
export interface Backend {
  appState(): Promise<AppState>;
  onStateChanged(listener: (state: AppState) => void): Unsubscribe;
  /** The menu of the tray asks for a page. */
  onPageRequested(listener: (page: Page) => void): Unsubscribe;
  onDrop(listener: (event: DropEvent) => void): Unsubscribe;

  sendMessage(conversation: string | null, text: string): Promise<SentMessage>;
  /** Calls `listener` with a snapshot first, then with what follows. */
  watchReply(reply: string, listener: (event: ReplyEvent) => void): Promise<void>;
  stopReply(reply: string): Promise<void>;

  conversation(id: string): Promise<Conversation>;
  renameConversation(id: string, title: string): Promise<void>;
  deleteConversation(id: string): Promise<void>;

  inspectPath(path: string): Promise<Verdict>;
  addModel(path: string): Promise<string>;
  removeModel(id: string): Promise<void>;
  selectModel(id: string): Promise<void>;
  loadModel(id: string): Promise<void>;
  unloadModel(id: string): Promise<void>;

  setEndpoint(enabled: boolean, port: number): Promise<EndpointState>;
  endpointToken(): Promise<string>;
  renewEndpointToken(): Promise<string>;

  openUrl(url: string): Promise<void>;
  hideWindow(): Promise<void>;
  quit(): Promise<void>;
}

/** An error in the person's words, with what to do about it where that is known. */
export class BackendError extends Error {
  readonly code: string;
  readonly hint: string | null;

  constructor(error: AppError) {
    super(error.message);
    this.code = error.code;
    this.hint = error.hint;
  }

  /** Whatever was thrown, as something that can be shown. */
  static from(thrown: unknown): BackendError {
    if (thrown instanceof BackendError) return thrown;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new BackendError({ code: "internal", message, hint: null });
  }
}

export const BackendContext = createContext<Backend | null>(null);

export function useBackend(): Backend {
  const backend = useContext(BackendContext);
  if (!backend) throw new Error("useBackend needs a BackendContext around it");
  return backend;
}

import { Channel } from "@tauri-apps/api/core";
import { getCurrentWebview } from "@tauri-apps/api/webview";
import { type Backend, BackendError, type Unsubscribe } from "./backend";
import { type AppError, commands, events, type ReplyEvent } from "./bindings";

/** The shell, through its typed commands. */
export function tauriBackend(): Backend {
  return {
    appState: () => answer(commands.appState()),
    onStateChanged: (listener) => unsubscribe(events.stateChanged.listen(({ payload }) => listener(payload))),
    onPageRequested: (listener) =>
      unsubscribe(events.pageRequested.listen(({ payload }) => listener(payload))),
    onDrop: (listener) =>
      unsubscribe(
        getCurrentWebview().onDragDropEvent(({ payload }) => {
          if (payload.type === "drop") listener({ kind: "drop", paths: payload.paths });
          else listener({ kind: payload.type === "leave" ? "leave" : "over" });
        }),
      ),

    sendMessage: (conversation, text) => answer(commands.sendMessage(conversation, text)),
    watchReply: (reply, listener) => done(commands.watchReply(reply, new Channel<ReplyEvent>(listener))),
    stopReply: (reply) => done(commands.stopReply(reply)),

    conversation: (id) => answer(commands.getConversation(id)),
    renameConversation: (id, title) => done(commands.renameConversation(id, title)),
    deleteConversation: (id) => done(commands.deleteConversation(id)),

    inspectPath: (path) => answer(commands.inspectPath(path)),
    addModel: (path) => answer(commands.addModel(path)),
    removeModel: (id) => done(commands.removeModel(id)),
    selectModel: (id) => done(commands.selectModel(id)),
    loadModel: (id) => done(commands.loadModel(id)),
    unloadModel: (id) => done(commands.unloadModel(id)),

    setEndpoint: (enabled, port) => answer(commands.setEndpoint(enabled, port)),
    endpointToken: () => answer(commands.endpointToken()),
    renewEndpointToken: () => answer(commands.renewEndpointToken()),

    openUrl: (url) => done(commands.openUrl(url)),
    hideWindow: () => done(commands.hideWindow()),
    quit: () => done(commands.quit()),
  };
}

type Result<T> = { status: "ok"; data: T } | { status: "error"; error: AppError };

/** What a command answers; rejects with a `BackendError`, also when the command could not be called. */
async function answer<T>(command: Promise<Result<T>>): Promise<T> {
  const result = await command.catch((thrown) => {
    throw BackendError.from(thrown);
  });
  if (result.status === "error") throw refused(result.error);
  return result.data;
}

async function done(command: Promise<Result<null>>): Promise<void> {
  await answer(command);
}

/** A call that never reached its command is refused with a bare string, which the types do not know. */
function refused(error: AppError | string): BackendError {
  return typeof error === "string" ? BackendError.from(error) : new BackendError(error);
}

/** Ends a subscription even when it is asked to before it has begun. */
function unsubscribe(listening: Promise<() => void>): Unsubscribe {
  return () => void listening.then((stop) => stop());
}

import { Channel, invoke } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";
import { getCurrentWebview } from "@tauri-apps/api/webview";
import { type Backend, BackendError, type Unsubscribe } from "./backend";
import type { AppError, AppState, Page, ReplyEvent } from "./types";

/** The shell, through its typed commands. */
export function tauriBackend(): Backend {
  return {
    appState: () => call("app_state"),
    onStateChanged: (listener) =>
      unsubscribe(listen<AppState>("state-changed", ({ payload }) => listener(payload))),
    onPageRequested: (listener) =>
      unsubscribe(listen<Page>("page-requested", ({ payload }) => listener(payload))),
    onDrop: (listener) =>
      unsubscribe(
        getCurrentWebview().onDragDropEvent(({ payload }) => {
          if (payload.type === "drop") listener({ kind: "drop", paths: payload.paths });
          else listener({ kind: payload.type === "leave" ? "leave" : "over" });
        }),
      ),

    sendMessage: (conversation, text) => call("send_message", { conversation, text }),
    watchReply: (reply, listener) =>
      call("watch_reply", { reply, onEvent: new Channel<ReplyEvent>(listener) }),
    stopReply: (reply) => call("stop_reply", { reply }),

    conversation: (id) => call("get_conversation", { id }),
    renameConversation: (id, title) => call("rename_conversation", { id, title }),
    deleteConversation: (id) => call("delete_conversation", { id }),

    inspectPath: (path) => call("inspect_path", { path }),
    addModel: (path) => call("add_model", { path }),
    removeModel: (id) => call("remove_model", { id }),
    selectModel: (id) => call("select_model", { id }),
    loadModel: (id) => call("load_model", { id }),
    unloadModel: (id) => call("unload_model", { id }),

    setEndpoint: (enabled, port) => call("set_endpoint", { enabled, port }),
    endpointToken: () => call("endpoint_token"),
    renewEndpointToken: () => call("renew_endpoint_token"),

    openUrl: (url) => call("open_url", { url }),
    hideWindow: () => call("hide_window"),
    quit: () => call("quit"),
  };
}

async function call<T>(command: string, args: Record<string, unknown> = {}): Promise<T> {
  try {
    return await invoke<T>(command, args);
  } catch (thrown) {
    throw isAppError(thrown) ? new BackendError(thrown) : BackendError.from(thrown);
  }
}

function isAppError(thrown: unknown): thrown is AppError {
  return typeof thrown === "object" && thrown !== null && "code" in thrown && "message" in thrown;
}

/** Ends a subscription even when it is asked to before it has begun. */
function unsubscribe(listening: Promise<() => void>): Unsubscribe {
  return () => void listening.then((stop) => stop());
}

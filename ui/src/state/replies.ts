import { createContext, useContext } from "react";
import type { Backend } from "../ipc/backend";
import { BackendError } from "../ipc/backend";
import type { Message, ReplyEvent } from "../ipc/bindings";
import { splitThinking } from "../text/thinking";
import { createStore, type Store } from "./store";

/** What a reply that is being written is doing now. */
export type Phase =
  | { kind: "waiting" }
  | { kind: "queued"; ahead: number }
  | { kind: "prefill"; done: number; of: number }
  | { kind: "writing"; tokensPerSecond: number | null; tokens: number }
  | { kind: "finished" };

export type Progress = {
  message: Message;
  phase: Phase;
  /** When the thought was first and last seen growing, in ms; null when nobody was watching. */
  thinkingFrom: number | null;
  thinkingTo: number | null;
};

export function initialProgress(message: Message): Progress {
  const phase: Phase = message.state === "streaming" ? { kind: "waiting" } : { kind: "finished" };
  return { message, phase, thinkingFrom: null, thinkingTo: null };
}

/** The state after `event`, seen at `now` (ms of any steady clock). */
export function advance(progress: Progress, event: ReplyEvent, now: number): Progress {
  switch (event.kind) {
    case "snapshot":
      return { ...progress, ...initialProgress(event.message) };
    case "queued":
      return { ...progress, phase: { kind: "queued", ahead: event.ahead } };
    case "prefill":
      return { ...progress, phase: { kind: "prefill", done: event.done, of: event.of } };
    case "text": {
      const message = { ...progress.message, text: progress.message.text + event.append };
      const phase: Phase = {
        kind: "writing",
        tokensPerSecond: event.tokensPerSecond,
        tokens: event.tokens,
      };
      return { message, phase, ...thinkingTimes(progress, message.text, now) };
    }
    case "done":
    case "failed":
      return { ...progress, message: event.message, phase: { kind: "finished" } };
  }
}

function thinkingTimes(before: Progress, text: string, now: number) {
  const { thinkingFrom, thinkingTo } = before;
  // Only a thought that was seen from its first piece has a length worth showing.
  const from = thinkingFrom ?? (before.message.text === "" ? now : null);
  if (from === null || thinkingTo !== null) return { thinkingFrom: from, thinkingTo };
  const { thinking, closed } = splitThinking(text);
  return { thinkingFrom: from, thinkingTo: thinking !== null && closed ? now : null };
}

export type ReplyStore = Pick<Store<Progress>, "get" | "subscribe">;

/** The replies that this window shows, followed from their first subscriber on. */
export interface Replies {
  of(message: Message): ReplyStore;
}

/** Calls back before the next frame is drawn, or soon where the window draws none. */
export type Schedule = (flush: () => void) => void;

const nextFrame: Schedule = (flush) => {
  if (document.visibilityState === "hidden") setTimeout(flush, 100);
  else requestAnimationFrame(flush);
};

export function createReplies(backend: Backend, schedule: Schedule = nextFrame): Replies {
  const stores = new Map<string, ReplyStore>();
  return {
    of(message) {
      const known = stores.get(message.id);
      // What was saved wins over a reply whose end was never heard.
      if (known && (message.state === "streaming" || known.get().phase.kind === "finished")) return known;
      const store = followReply(backend, message, schedule);
      // A finished message holds everything itself and is not kept.
      if (message.state === "streaming") stores.set(message.id, store);
      return store;
    },
  };
}

function followReply(backend: Backend, message: Message, schedule: Schedule): ReplyStore {
  const store = createStore(initialProgress(message));
  let following = message.state !== "streaming";
  let waiting: ReplyEvent[] = [];

  const flush = () => {
    const events = waiting;
    waiting = [];
    const now = performance.now();
    store.set(events.reduce((progress, event) => advance(progress, event, now), store.get()));
  };
  const receive = (event: ReplyEvent) => {
    waiting.push(event);
    if (waiting.length === 1) schedule(flush);
  };
  const lost = (thrown: unknown) => {
    const { code, message: text, hint } = BackendError.from(thrown);
    const failed: Message = {
      ...store.get().message,
      state: "failed",
      error: { code, message: text, hint },
    };
    receive({ kind: "failed", message: failed });
  };

  return {
    get: store.get,
    subscribe(listener) {
      if (!following) {
        following = true;
        backend.watchReply(message.id, receive).catch(lost);
      }
      return store.subscribe(listener);
    },
  };
}

export const RepliesContext = createContext<Replies | null>(null);

export function useReplies(): Replies {
  const replies = useContext(RepliesContext);
  if (!replies) throw new Error("useReplies needs a RepliesContext around it");
  return replies;
}

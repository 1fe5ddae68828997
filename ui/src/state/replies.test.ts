import { expect, test } from "vitest";
import type { Message, ReplyEvent } from "../ipc/bindings";
import { FakeBackend, newMessage } from "../ipc/fake";
import { advance, createReplies, initialProgress, type Progress } from "./replies";

const reply: Message = newMessage("r", "assistant", "", "streaming");

function after(...events: ReplyEvent[]): Progress {
  return events.reduce(
    (progress, event, second) => advance(progress, event, second * 1000),
    initialProgress(reply),
  );
}

function piece(append: string): ReplyEvent {
  return { kind: "text", append, tokensPerSecond: 20, tokens: 1 };
}

test("a reply goes from waiting through prefill to writing and its end", () => {
  expect(after().phase).toEqual({ kind: "waiting" });
  expect(after({ kind: "queued", ahead: 2 }).phase).toEqual({ kind: "queued", ahead: 2 });
  expect(after({ kind: "prefill", done: 3, of: 9 }).phase).toEqual({ kind: "prefill", done: 3, of: 9 });
  const writing = after(piece("Hel"), piece("lo"));
  expect(writing.phase).toEqual({ kind: "writing", tokensPerSecond: 20, tokens: 1 });
  expect(writing.message.text).toBe("Hello");
  const message: Message = { ...reply, text: "Hello.", state: "complete" };
  const done = after(piece("Hel"), { kind: "done", message });
  expect(done.phase).toEqual({ kind: "finished" });
  expect(done.message).toBe(message);
});

test("a snapshot replaces what was there, and a finished one ends the reply", () => {
  expect(after(piece("x"), { kind: "snapshot", message: { ...reply, text: "abc" } }).message.text).toBe(
    "abc",
  );
  const stopped: Message = { ...reply, text: "abc", state: "stopped" };
  expect(after({ kind: "snapshot", message: stopped }).phase).toEqual({ kind: "finished" });
});

test("a thought is timed from its first piece to the first one after it", () => {
  const progress = after(piece("<think>"), piece("Hm"), piece("</think>"), piece("Yes"), piece("!"));
  expect([progress.thinkingFrom, progress.thinkingTo]).toEqual([0, 2000]);
});

test("a thought whose beginning was not seen has no length", () => {
  const halfway: Message = { ...reply, text: "<think>Hm" };
  const progress = after({ kind: "snapshot", message: halfway }, piece("</think>Yes"));
  expect(progress.thinkingFrom).toBeNull();
});

test("pieces that come within one frame cause one change", async () => {
  const backend = new FakeBackend();
  const frames: (() => void)[] = [];
  const replies = createReplies(backend, (flush) => frames.push(flush));
  const sent = await backend.sendMessage(null, "Hi");
  const store = replies.of({ ...backend.message(sent.reply) });
  let changes = 0;
  store.subscribe(() => changes++);
  for (const text of ["a", "b", "c"]) backend.emit(sent.reply, piece(text));
  expect(store.get().message.text).toBe("");
  expect(frames).toHaveLength(1);
  frames.shift()?.();
  expect(store.get().message.text).toBe("abc");
  expect(changes).toBe(1);
});

test("a reply that cannot be watched says so instead of waiting for ever", async () => {
  const backend = new FakeBackend();
  const replies = createReplies(backend, (flush) => flush());
  const store = replies.of({ ...reply, id: "unknown" });
  store.subscribe(() => {});
  await Promise.resolve();
  await Promise.resolve();
  expect(store.get().phase).toEqual({ kind: "finished" });
  expect(store.get().message.error?.code).toBe("not_found");
});

test("what was saved wins over a reply whose end was never heard", async () => {
  const backend = new FakeBackend();
  const replies = createReplies(backend, () => {});
  const sent = await backend.sendMessage(null, "Hi");
  const streaming = { ...backend.message(sent.reply) };
  replies.of(streaming).subscribe(() => {});
  const saved: Message = { ...streaming, state: "complete", text: "All of it" };
  expect(replies.of(saved).get().message.text).toBe("All of it");
});

import { expect, test } from "vitest";
import type { AppState } from "../ipc/bindings";
import { emptyState, FakeBackend } from "../ipc/fake";
import { followAppState } from "./app-state";
import { readDraft, writeDraft } from "./drafts";

test("a change that arrives before the first answer is not overwritten by it", async () => {
  const backend = new FakeBackend();
  let answer = (_: AppState) => {};
  const late = new Promise<AppState>((resolve) => {
    answer = resolve;
  });
  backend.appState = () => late;
  const store = followAppState(backend);
  backend.change({ version: "newer" });
  answer({ ...emptyState(), version: "older" });
  await late;
  expect(store.get()).toMatchObject({ kind: "ready", state: { version: "newer" } });
});

test("a shell that does not answer is reported", async () => {
  const backend = new FakeBackend();
  backend.appState = () => Promise.reject(new Error("no shell"));
  const store = followAppState(backend);
  await new Promise((resolve) => setTimeout(resolve));
  expect(store.get()).toMatchObject({ kind: "failed", error: { message: "no shell" } });
});

test("each conversation has its own draft, and an emptied one leaves nothing behind", () => {
  writeDraft(null, "new");
  writeDraft("a", "of a");
  expect([readDraft(null), readDraft("a"), readDraft("b")]).toEqual(["new", "of a", ""]);
  writeDraft(null, "");
  expect(localStorage.length).toBe(1);
});

import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, test } from "vitest";
import { BackendError } from "../ipc/backend";
import type { Message, SentMessage } from "../ipc/bindings";
import { FakeBackend, newMessage } from "../ipc/fake";
import { renderApp, withModel } from "../testing/render";

const field = () => screen.findByRole("textbox", { name: "Message" });

/** Sends a message; resolves to its ids once the reply is being written. */
async function send(backend: FakeBackend, text = "Hi"): Promise<SentMessage> {
  const sent = new Promise<SentMessage>((resolve) => {
    backend.onSend = resolve;
  });
  const user = renderApp(backend);
  await user.type(await field(), `${text}{Enter}`);
  const ids = await sent;
  await screen.findByRole("button", { name: "Stop" });
  return ids;
}

test("the page says when it is ready", async () => {
  renderApp(withModel());
  await field();
  expect(document.body.dataset.ready).toBe("1");
});

test("a message is sent, its reply grows, and its end is shown", async () => {
  const backend = withModel();
  const { reply } = await send(backend, "Hello there");
  expect(screen.getByRole("article", { name: "You" })).toHaveTextContent("Hello there");
  expect(await field()).toHaveValue("");

  act(() => backend.emit(reply, { kind: "queued", ahead: 1 }));
  expect(await screen.findByText("Waiting behind 1 request")).toBeInTheDocument();
  act(() => backend.emit(reply, { kind: "prefill", done: 340, of: 1204 }));
  expect(await screen.findByText("Reading 340 of 1,204 tokens")).toBeInTheDocument();
  act(() => backend.emit(reply, { kind: "text", append: "Good ", tokensPerSecond: null, tokens: 1 }));
  act(() => backend.emit(reply, { kind: "text", append: "day", tokensPerSecond: 23.2, tokens: 2 }));
  expect(await screen.findByText("23 tok/s")).toBeInTheDocument();
  expect(screen.getByText("Good day")).toBeInTheDocument();

  const stats = { promptTokens: 9, completionTokens: 2, tokensPerSecond: 23, timeToFirstTokenMs: 1 };
  act(() => backend.end(reply, { state: "complete", stats }));
  expect(await screen.findByText("2 tokens · 23 tok/s")).toBeInTheDocument();
  expect(screen.getByRole("button", { name: "Send" })).toBeInTheDocument();
});

test("Shift+Enter makes a line and Enter does not send an empty message", async () => {
  const backend = withModel();
  const user = renderApp(backend);
  await user.type(await field(), "  {Enter}");
  await user.type(await field(), "a{Shift>}{Enter}{/Shift}b");
  expect(await field()).toHaveValue("  a\nb");
  expect(backend.state.conversations).toHaveLength(0);
});

test.each([{ isComposing: true }, { keyCode: 229 }])(
  "Enter that ends a composition %j does not send",
  async (how) => {
    const backend = withModel();
    const user = renderApp(backend);
    await user.type(await field(), "にほん");
    fireEvent.keyDown(await field(), { key: "Enter", ...how });
    expect(await field()).toHaveValue("にほん");
    expect(backend.state.conversations).toHaveLength(0);
  },
);

test("Enter while a reply is being written keeps the draft", async () => {
  const backend = withModel();
  await send(backend);
  fireEvent.change(await field(), { target: { value: "next" } });
  fireEvent.keyDown(await field(), { key: "Enter" });
  expect(await field()).toHaveValue("next");
});

test("Esc stops the reply first and hides the window after", async () => {
  const backend = withModel();
  const { reply } = await send(backend);
  fireEvent.keyDown(await field(), { key: "Escape" });
  expect(await screen.findByText("Stopped")).toBeInTheDocument();
  expect(backend.message(reply).state).toBe("stopped");
  expect(backend.hidden).toBe(0);
  fireEvent.keyDown(await field(), { key: "Escape" });
  expect(backend.hidden).toBe(1);
});

test("a message that cannot be sent stays in the field, with the reason", async () => {
  const backend = withModel();
  backend.sendMessage = () =>
    Promise.reject(new BackendError({ code: "disk_full", message: "The disk is full.", hint: "Make room." }));
  const user = renderApp(backend);
  await user.type(await field(), "precious{Enter}");
  expect(await screen.findByRole("alert")).toHaveTextContent("The disk is full.Make room.");
  expect(await field()).toHaveValue("precious");
});

test("a draft and the open conversation are there after the window was closed", async () => {
  const backend = withModel();
  backend.addConversation({ id: "c", title: "Old", messages: [newMessage("1", "user", "Earlier")] }, 0);
  localStorage.setItem("perch.conversation", "c");
  localStorage.setItem("perch.draft.c", "half a thought");
  renderApp(backend);
  expect(await screen.findByText("Earlier")).toBeInTheDocument();
  expect(await field()).toHaveValue("half a thought");
});

test("a reply that was begun before the window was opened goes on in it", async () => {
  const backend = withModel();
  const growing = newMessage("2", "assistant", "One, two", "streaming");
  backend.addConversation(
    { id: "c", title: "Old", messages: [newMessage("1", "user", "Count"), growing] },
    0,
  );
  localStorage.setItem("perch.conversation", "c");
  renderApp(backend);
  expect(await screen.findByText("One, two")).toBeInTheDocument();
  act(() => backend.emit("2", { kind: "text", append: ", three", tokensPerSecond: null, tokens: 3 }));
  expect(await screen.findByText("One, two, three")).toBeInTheDocument();
});

const failure: Message = {
  ...newMessage("2", "assistant", "", "failed"),
  error: { code: "gone", message: "The folder is gone.", hint: "Put it back." },
};

test.each([
  [newMessage("2", "assistant", "Half", "stopped"), "Stopped"],
  [newMessage("2", "assistant", "Half", "interrupted"), "Perch closed before this reply was finished."],
  [failure, "The folder is gone.Put it back."],
])("an ending is shown for what it is, and can be tried again (%#)", async (message, words) => {
  const backend = withModel();
  backend.addConversation({ id: "c", title: "Old", messages: [newMessage("1", "user", "Ask"), message] }, 0);
  localStorage.setItem("perch.conversation", "c");
  const user = renderApp(backend);
  expect(await screen.findByRole("article", { name: "Reply" })).toHaveTextContent(words);
  await user.click(screen.getByRole("button", { name: "Try again" }));
  await waitFor(() => expect(screen.getAllByText("Ask")).toHaveLength(2));
});

test("thinking is folded away and the answer stands alone", async () => {
  const backend = withModel();
  const messages = [newMessage("1", "user", "Ask"), newMessage("2", "assistant", "<think>Hm</think>Yes")];
  backend.addConversation({ id: "c", title: "Old", messages }, 0);
  localStorage.setItem("perch.conversation", "c");
  renderApp(backend);
  const thought = await screen.findByText("Hm");
  expect(thought.closest("details")).not.toHaveAttribute("open");
  expect(screen.getByText("Yes").closest("details")).toBeNull();
});

test.each([
  [new FakeBackend(), "Drop a model folder here first"],
  [withModel({ kind: "missing" }), "This model’s folder is gone"],
])("without a usable model the field says why it is closed (%#)", async (backend, reason) => {
  renderApp(backend);
  expect(await field()).toBeDisabled();
  expect(await field()).toHaveAttribute("placeholder", reason);
});

test.each([
  [{ kind: "loading", progress: 0.42 } as const, "Loading 42%"],
  [{ kind: "ready", memoryBytes: 412 * 2 ** 20 } as const, "Ready, 412 MB in memory"],
  [
    { kind: "failed", error: { code: "x", message: "Does not fit.", hint: "Take less." } } as const,
    "Does not fit.",
  ],
])("the model picker shows the state %#", async (state, words) => {
  const user = renderApp(withModel(state));
  await user.click(await screen.findByTitle("Choose a model"));
  expect(screen.getByRole("dialog", { name: "Models" })).toHaveTextContent(words);
  await user.keyboard("{Escape}");
  expect(screen.queryByRole("dialog")).toBeNull();
});

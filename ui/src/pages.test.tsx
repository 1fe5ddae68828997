import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { BackendError } from "./ipc/backend";
import type { Verdict } from "./ipc/bindings";
import { FakeBackend, newMessage } from "./ipc/fake";
import { renderApp, withModel } from "./testing/render";

beforeEach(() => {
  // jsdom has dialogs, but cannot open them.
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
});

const verdict: Verdict = {
  path: "/models/New",
  name: "New",
  family: "qwen3",
  parameters: 596_049_920,
  form: "4-bit affine, groups of 64",
  bitsPerWeight: 4.5,
  contextTokens: 40960,
  hasTemplate: true,
  tools: false,
  thinking: true,
  bytesOnDisk: 335e6,
  memory: [
    { context: 4096, bytes: 2 ** 30, fits: true },
    { context: 40960, bytes: 2 ** 35, fits: false },
  ],
  problems: [],
  runnable: true,
  alreadyAdded: false,
};

function dropping(found: Verdict): FakeBackend {
  const backend = new FakeBackend();
  backend.verdicts.set(found.path, found);
  return backend;
}

test("a dropped folder gets a verdict, and one click adds and selects it", async () => {
  const backend = dropping(verdict);
  const user = renderApp(backend);
  await screen.findByText("Bring a model to Perch");
  act(() => backend.drop({ kind: "over" }));
  expect(screen.getByText("Drop to see what this is")).toBeInTheDocument();
  act(() => backend.drop({ kind: "drop", paths: [verdict.path] }));
  const card = await screen.findByRole("region", { name: "New" });
  for (const words of [
    "qwen3",
    "596M",
    "4-bit affine, groups of 64",
    "40k tokens",
    "335 MB",
    "Does not fit",
  ]) {
    expect(card).toHaveTextContent(words);
  }
  expect(card).toHaveTextContent("Tools: no");
  await user.click(screen.getByRole("button", { name: "Add to Perch" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(backend.state.selectedModel).toBe("New");
});

test("a folder that cannot run says what is wrong with which file, and cannot be added", async () => {
  const problem = { file: "tokenizer.json", message: "It is missing.", hint: "Download it." };
  const backend = dropping({ ...verdict, runnable: false, problems: [problem] });
  renderApp(backend);
  await screen.findByText("Bring a model to Perch");
  act(() => backend.drop({ kind: "drop", paths: [verdict.path] }));
  expect(await screen.findByRole("list", { name: "Problems" })).toHaveTextContent(
    "tokenizer.jsonIt is missing.Download it.",
  );
  expect(screen.queryByRole("button", { name: "Add to Perch" })).toBeNull();
});

test("what is not a model at all is said to be none", async () => {
  const backend = new FakeBackend();
  renderApp(backend);
  await screen.findByText("Bring a model to Perch");
  act(() => backend.drop({ kind: "drop", paths: ["/tmp/holiday photos"] }));
  expect(await screen.findByRole("alert")).toHaveTextContent("This folder holds no model.");
});

test("the endpoint is switched on, and what other apps need is shown", async () => {
  const backend = withModel();
  const user = renderApp(backend);
  await user.click(await screen.findByRole("button", { name: "Settings" }));
  const toggle = screen.getByRole("switch", { name: "Serve other apps" });
  expect(toggle).not.toBeChecked();
  await user.click(toggle);
  expect(toggle).toBeChecked();
  expect(screen.getByText("http://127.0.0.1:11711/v1")).toBeInTheDocument();
  await user.click(screen.getByRole("button", { name: "Copy curl line" }));
  expect(await navigator.clipboard.readText()).toContain(`Authorization: Bearer ${backend.token}`);
});

test("the token is hidden until asked for, and renewed only after a second word", async () => {
  const backend = withModel();
  const user = renderApp(backend);
  const before = backend.token;
  await user.click(await screen.findByRole("button", { name: "Settings" }));
  await screen.findByRole("button", { name: "Show token" });
  expect(document.body).not.toHaveTextContent(before);
  await user.click(screen.getByRole("button", { name: "Show token" }));
  expect(screen.getByText(before)).toBeInTheDocument();
  await user.click(screen.getByRole("button", { name: "Renew token" }));
  expect(backend.token).toBe(before);
  await user.click(screen.getByRole("button", { name: "Renew" }));
  expect(await screen.findByText(backend.token)).toBeInTheDocument();
  expect(backend.token).not.toBe(before);
});

test.each(["80", "70000", "x", "", "-1", "11711.5", "1e4"])(
  "the port %j is refused before it is tried",
  async (port) => {
    const backend = withModel();
    const set = vi.spyOn(backend, "setEndpoint");
    const user = renderApp(backend);
    await user.click(await screen.findByRole("button", { name: "Settings" }));
    fireEvent.change(screen.getByRole("textbox", { name: "Port" }), { target: { value: port } });
    await user.tab();
    expect(screen.getByRole("alert")).toHaveTextContent("1024 to 65535");
    expect(set).not.toHaveBeenCalled();
  },
);

test("a port that is taken is said to be", async () => {
  const backend = withModel();
  backend.setEndpoint = () =>
    Promise.reject(
      new BackendError({ code: "port_in_use", message: "Port 8080 is in use.", hint: "Choose another." }),
    );
  const user = renderApp(backend);
  await user.click(await screen.findByRole("button", { name: "Settings" }));
  await user.clear(screen.getByRole("textbox", { name: "Port" }));
  await user.type(screen.getByRole("textbox", { name: "Port" }), "8080{Enter}");
  expect(await screen.findByText("Port 8080 is in use.")).toBeInTheDocument();
});

test("removing a model says that its files stay, and asks", async () => {
  const backend = withModel();
  const user = renderApp(backend);
  await user.click(await screen.findByRole("button", { name: "Settings" }));
  await user.click(screen.getByRole("button", { name: "Remove Tiny" }));
  expect(screen.getByText(/Its files stay where they are/)).toBeInTheDocument();
  expect(backend.state.models).toHaveLength(1);
  await user.click(screen.getByRole("button", { name: "Remove" }));
  await waitFor(() => expect(backend.state.models).toHaveLength(0));
});

function withHistory(): FakeBackend {
  const backend = withModel();
  const messages = [newMessage("1", "user", "Earlier")];
  backend.addConversation({ id: "a", title: "First", messages }, Date.now() - 1000);
  backend.addConversation({ id: "b", title: "Second", messages: [] }, Date.now());
  return backend;
}

test("history lists the newest first, opens, renames and deletes", async () => {
  const backend = withHistory();
  const user = renderApp(backend);
  await user.click(await screen.findByRole("button", { name: "History" }));
  const titles = screen.getAllByRole("listitem").map((item) => item.textContent);
  expect(titles[0]).toContain("Second");

  await user.click(screen.getByRole("button", { name: "Rename “First”" }));
  await user.keyboard("Birds{Enter}");
  expect(await screen.findByText("Birds")).toBeInTheDocument();

  await user.click(screen.getByRole("button", { name: "Delete “Second”" }));
  await user.click(screen.getByRole("button", { name: "Keep" }));
  expect(backend.state.conversations).toHaveLength(2);
  await user.click(screen.getByRole("button", { name: "Delete “Second”" }));
  await user.click(screen.getByRole("button", { name: "Delete" }));
  await waitFor(() => expect(backend.state.conversations).toHaveLength(1));

  await user.click(screen.getByText("Birds"));
  expect(await screen.findByText("Earlier")).toBeInTheDocument();
});

test("Esc leaves a name as it was, then the page, and does not hide the window", async () => {
  const backend = withHistory();
  const user = renderApp(backend);
  await user.click(await screen.findByRole("button", { name: "History" }));
  await user.click(screen.getByRole("button", { name: "Rename “First”" }));
  await user.keyboard("Birds{Escape}");
  expect(await screen.findByText("First")).toBeInTheDocument();
  await user.keyboard("{Escape}");
  expect(await screen.findByRole("textbox", { name: "Message" })).toBeInTheDocument();
  expect(backend.hidden).toBe(0);
});

test("the menu of the tray leads to a new chat and to settings", async () => {
  const backend = withHistory();
  localStorage.setItem("perch.conversation", "a");
  renderApp(backend);
  await screen.findByText("Earlier");
  act(() => backend.requestPage("settings"));
  expect(screen.getByRole("heading", { name: "Settings" })).toBeInTheDocument();
  act(() => backend.requestPage("newChat"));
  expect(screen.queryByText("Earlier")).toBeNull();
  expect(screen.getByRole("textbox", { name: "Message" })).toBeInTheDocument();
});

test("the keys for a new chat and for settings work", async () => {
  const backend = withHistory();
  localStorage.setItem("perch.conversation", "a");
  renderApp(backend);
  await screen.findByText("Earlier");
  fireEvent.keyDown(document.body, { key: ",", ctrlKey: true });
  expect(screen.getByRole("heading", { name: "Settings" })).toBeInTheDocument();
  fireEvent.keyDown(document.body, { key: "n", ctrlKey: true });
  expect(screen.queryByText("Earlier")).toBeNull();
  expect(screen.getByRole("textbox", { name: "Message" })).toBeInTheDocument();
});

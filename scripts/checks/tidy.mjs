// What no compiler checks: long files, unfinished work, crates without the workspace's lints.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { output, root, say } from "../run.mjs";

const longest = 600;
/** Files that are longer for a reason. */
const longFor = {
  "ui/src/ipc/bindings.ts": "generated from the shell's types",
};
// Written in halves so that this file does not find itself.
const forbidden = [
  [new RegExp(`\\b(todo|unimplemented)${"!"}\\(`), "unfinished"],
  [/\b(TOD[O]|FIXM[E]|XX[X])\b/, "unfinished"],
  [new RegExp(`#\\[igno${"re"}`), "a test that never runs"],
  [
    new RegExp(`\\b(it|test|describe)\\.(on${"ly"}|sk${"ip"}|todo)\\(`),
    "a test that never runs, or the only one that does",
  ],
  [new RegExp(`#\\[all${"ow"}\\(`), "use #[expect(…, reason = …)]"],
  [/^(<<<<<<<|>>>>>>>) /, "a conflict that was not resolved"],
];

const problems = [];
const files = output("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
  .split("\0")
  .filter(Boolean);
const sources = files.filter(
  (file) => /\.(rs|ts|tsx|css|mjs|py|sh)$/.test(file) && !file.startsWith("tests/fixtures/"),
);
for (const file of sources) {
  const lines = readFileSync(join(root, file), "utf8").split("\n");
  if (lines.length > longest && !(file in longFor))
    problems.push(`${file}: ${lines.length} lines; split it (limit ${longest})`);
  lines.forEach((line, index) => {
    for (const [pattern, why] of forbidden)
      if (pattern.test(line)) problems.push(`${file}:${index + 1}: ${why}: ${line.trim()}`);
  });
}
for (const file of files) {
  if (/(^|\/)node_modules\/|(^|\/)target\/|\.DS_Store$/.test(file))
    problems.push(`${file}: built or installed, not source; it does not belong here`);
}
for (const file of files.filter((file) => /^(crates\/[^/]+|src-tauri)\/Cargo\.toml$/.test(file))) {
  const manifest = readFileSync(join(root, file), "utf8");
  if (!/^\[lints\]\nworkspace = true$/m.test(manifest))
    problems.push(`${file}: [lints] workspace = true is missing`);
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
say(`${files.length} files, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;

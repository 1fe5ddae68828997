// Which crate may call which. ARCHITECTURE.md draws the same arrows; there are no others, in tests neither.
import { output, say } from "../run.mjs";

const allowed = {
  "perch-app": ["perch-engine", "perch-chats", "perch-library", "perch-server", "perch-model"],
  "perch-cli": ["perch-server", "perch-engine", "perch-library", "perch-model"],
  "perch-server": ["perch-engine", "perch-model"],
  "perch-engine": ["perch-cpu", "perch-nn", "perch-model"],
  "perch-cpu": ["perch-nn", "perch-model"],
  "perch-nn": ["perch-model"],
  "perch-library": ["perch-model"],
  "perch-model": [],
  "perch-chats": [],
};

const metadata = JSON.parse(
  output("cargo", ["metadata", "--format-version", "1", "--no-deps", "--locked"]) ?? "null",
);
if (metadata === null) throw new Error("`cargo metadata --locked` failed: is Cargo.lock up to date?");

const problems = [];
const names = new Set(metadata.packages.map(({ name }) => name));
for (const { name, dependencies } of metadata.packages) {
  if (!(name in allowed)) {
    problems.push(
      `${name} is a new crate: say in scripts/checks/arrows.mjs and ARCHITECTURE.md what it may call`,
    );
    continue;
  }
  for (const dependency of dependencies) {
    if (!names.has(dependency.name) || allowed[name].includes(dependency.name)) continue;
    const how = dependency.kind === null ? "" : ` (${dependency.kind}-dependency)`;
    problems.push(`${name} → ${dependency.name}${how} is no arrow of the design`);
  }
}
for (const name of Object.keys(allowed)) {
  if (!names.has(name)) problems.push(`${name} is in the list of arrows but not in the workspace`);
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
say(`${names.size} crates, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;

// `npm test`: sets up what is needed and runs everything. `npm test -- --only rust,api` runs some of it.
import { join } from "node:path";
import { arrows } from "./arrows.mjs";
import { must, nodeModules, python, root, run, Stop, system } from "./setup.mjs";
import { tidy } from "./tidy.mjs";

const only = process.argv.includes("--only") ? process.argv[process.argv.indexOf("--only") + 1].split(",") : null;

/** Name, and what to do; a step fails by throwing. */
const steps = [
  ["format", () => must("cargo", ["fmt", "--all", "--check"])],
  ["tidy", tidy],
  ["arrows", arrows],
  ["ui", ui],
  ["lint", () => must("cargo", ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])],
  ["rust", () => must("cargo", ["test", "--locked", "--workspace"])],
  ["api", api],
];

function ui() {
  nodeModules();
  must("npm", ["run", "--silent", "ui:check"]);
  must("npm", ["run", "--silent", "ui:test"]);
  must("npm", ["run", "--silent", "ui:build"]);
}

function api() {
  must("cargo", ["build", "--locked", "-p", "perch-cli"]);
  const interpreter = python("api", ["openai==1.109.1", "pytest==8.4.2", "httpx==0.28.1"]);
  must(interpreter, ["-m", "pytest", "-q", "-p", "no:cacheprovider", join(root, "tests/api")]);
}

const results = [];
try {
  system(["core", "app", "apiTests"]);
} catch (error) {
  if (!(error instanceof Stop)) throw error;
  console.error(error.message);
  process.exit(1);
}
for (const [name, step] of steps.filter(([name]) => !only || only.includes(name))) {
  console.log(`\n── ${name} ${"─".repeat(Math.max(0, 60 - name.length))}`);
  const begun = Date.now();
  let failed = null;
  try {
    await step();
  } catch (error) {
    failed = error instanceof Stop ? error.message : error.stack;
    console.error(failed);
  }
  results.push({ name, failed, seconds: (Date.now() - begun) / 1000 });
}
console.log("\n── summary");
for (const { name, failed, seconds } of results) {
  console.log(`  ${failed ? "failed" : "passed"}  ${name.padEnd(10)} ${seconds.toFixed(0).padStart(5)} s`);
}
const failures = results.filter((result) => result.failed).length;
console.log(`\n${results.length - failures} passed, ${failures} failed`);
process.exit(failures === 0 && results.length > 0 ? 0 : 1);

// `npm test`: sets up what is missing and runs every step; `npm test -- --only rust,ui` runs the named ones.
// The last line says how many steps passed and failed.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { output, Problem, root, run, say, tell } from "./run.mjs";
import { checkTools, installNodeModules, installPackages, packages, pythonEnvironment } from "./setup.mjs";

const linux = process.platform === "linux";
/** The app is always built as it ships: with its page inside. One set of features keeps one set of artefacts. */
const features = ["--features", "perch-app/custom-protocol"];
const cargo = (...args) => run("cargo", args);
const npm = (script) => run("npm", ["run", "--silent", script]);
const check = (name) => run("node", [`scripts/checks/${name}.mjs`]);

/** In this order: what is quick and often wrong comes first. `after` names steps without which one makes no sense. */
const steps = {
  format: { title: "Rust formatting", do: () => cargo("fmt", "--all", "--check") },
  tidy: { title: "Files, manifests and unfinished work", do: () => check("tidy") },
  arrows: { title: "Crates call only what the design lets them call", do: () => check("arrows") },
  licences: { title: "Licences and sources of dependencies", do: () => check("licences") },
  spelling: { title: "Spelling", do: spelling },
  "ui-check": { title: "UI formatting, lints and types", do: () => npm("ui:check") },
  "ui-test": { title: "UI unit tests", do: () => npm("ui:test") },
  "ui-build": { title: "UI build", do: () => npm("ui:build") },
  "ui-browser": { title: "UI screens in a browser", do: () => npm("ui:browser") },
  build: {
    title: "Rust build, with all tests",
    after: ["ui-build"],
    do: () => cargo("build", "--locked", "--workspace", "--all-targets", ...features),
  },
  "rust-test": {
    title: "Rust tests; generated bindings are fresh",
    after: ["build"],
    do: () => cargo("test", "--locked", "--workspace", "--no-fail-fast", ...features),
  },
  clippy: {
    title: "Rust lints",
    after: ["ui-build"],
    do: () =>
      cargo("clippy", "--locked", "--workspace", "--all-targets", ...features, "--", "-D", "warnings"),
  },
  api: {
    title: "The endpoint from real clients",
    after: ["build"],
    do: api,
  },
  desktop: { title: "The app in a real window", after: ["build"], on: linux, do: desktop },
  macos: { title: "Types and lints for macOS", after: ["ui-build"], do: macos },
};
/** Names for several steps at once. */
const groups = {
  rust: ["format", "build", "rust-test", "clippy"],
  ui: ["ui-check", "ui-test", "ui-build", "ui-browser"],
  quick: ["format", "tidy", "arrows", "licences", "spelling", "ui-check", "ui-test"],
};

const results = [];
try {
  const wanted = chosen();
  await step("setup", "Setting up", setUp);
  if (results[0].outcome === "passed")
    for (const name of wanted) await step(name, steps[name].title, steps[name].do, steps[name].after);
} catch (error) {
  tell(error);
  results.push({ title: "The command line", outcome: "failed", seconds: 0 });
}
summary();

async function setUp() {
  checkTools();
  // What is not Debian's to install is asked for on a Mac too: a browser for the UI's screens.
  await installPackages(Object.keys(packages));
  await installNodeModules();
}

function spelling() {
  return pythonEnvironment("spelling", ["typos==1.52.0"]).then((folder) =>
    run(join(folder, "bin/typos"), []),
  );
}

/** The Python with the real clients that talk to the endpoint. */
async function clients() {
  const folder = await pythonEnvironment("clients", ["openai==3.52.0", "pytest==9.2.0", "httpx==0.28.1"]);
  return join(folder, "bin/python");
}

async function api() {
  await run(await clients(), ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/api"], {
    env: { PYTHONDONTWRITEBYTECODE: "1" },
  });
}

async function desktop() {
  await run("node", ["tests/desktop/run.mjs"], { env: { PERCH_PYTHON: await clients() } });
}

async function macos() {
  let zig = "";
  if (linux) {
    const folder = await pythonEnvironment("zig", ["ziglang==0.17.0"]);
    zig = output(join(folder, "bin/python"), [
      "-c",
      "import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), 'zig'))",
    ]);
  }
  await run("bash", ["scripts/macos-check/check.sh"], { env: { ZIG: zig } });
}

/** The steps that the command line asks for, all without `--only`, in the order above. */
function chosen() {
  const { values } = parseArgs({ options: { only: { type: "string" } } });
  const here = Object.keys(steps).filter((name) => steps[name].on !== false);
  if (values.only === undefined) return here;
  const names = values.only.split(",").flatMap((name) => groups[name] ?? [name]);
  const unknown = names.filter((name) => !(name in steps));
  if (unknown.length > 0) {
    const all = [...Object.keys(groups), ...Object.keys(steps)].join(", ");
    throw new Problem(`No step is called ${unknown.join(", ")}.`, `There are: ${all}`);
  }
  return here.filter((name) => names.includes(name));
}

async function step(name, title, work, after = []) {
  say(`\n━━━ ${title} (${name})`);
  const began = Date.now();
  let outcome = "passed";
  const missing = after.find((other) =>
    results.some((result) => result.name === other && result.outcome === "failed"),
  );
  try {
    if (missing) throw new Problem(`Not run: the step ${missing} failed.`);
    await work();
  } catch (error) {
    tell(error);
    outcome = "failed";
  }
  const seconds = (Date.now() - began) / 1000;
  say(`━━━ ${outcome} in ${time(seconds)}`);
  results.push({ name, title, outcome, seconds });
}

function summary() {
  say("\n━━━ Summary");
  for (const { title, outcome, seconds } of results)
    say(`${outcome.padEnd(7)} ${time(seconds).padStart(8)}  ${title}`);
  say(`        ${time(results.reduce((sum, { seconds }) => sum + seconds, 0)).padStart(8)}  altogether`);
  if (existsSync(join(root, "test-results"))) say("What the tests left is in test-results/.");
  const failed = results.filter(({ outcome }) => outcome === "failed").length;
  say(`${results.length - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

function time(seconds) {
  const whole = Math.round(seconds);
  return whole < 60
    ? `${seconds.toFixed(1)} s`
    : `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}

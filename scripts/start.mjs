// `npm start`: installs what is missing, builds, and opens Perch.
// With no display, or with arguments for `perch serve`, it serves the endpoint instead.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root, run, say, tell } from "./run.mjs";
import { checkTools, installNodeModules, installPackages } from "./setup.mjs";

// Ctrl-C reaches the program that runs now as well; this one waits for it to end.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child?.kill("SIGTERM"));
let child;

try {
  const args = process.argv.slice(2);
  const display = process.platform === "darwin" || process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  checkTools();
  if (args.length > 0) {
    say("Arguments are for the endpoint: Perch serves it without its window.");
    process.exitCode = await serve(args);
  } else if (display) {
    process.exitCode = await open();
  } else {
    say("There is no display here: Perch serves its endpoint instead of opening its window.");
    process.exitCode = await serve(args);
  }
} catch (error) {
  tell(error);
  process.exitCode = 1;
}

async function open() {
  await installPackages(["build", "window"]);
  await installNodeModules();
  say("Building the UI…");
  await run("npm", ["run", "--silent", "ui:build", "--", "--logLevel", "warn"], {
    hint: "`npm run ui:check` may say more.",
  });
  await build("perch-app", "--features", "perch-app/custom-protocol");
  say("Perch is starting. Ctrl-C here, or Quit in its menu, ends it.");
  child = spawn(join(root, "target/release/perch-app"), [], { stdio: "inherit" });
  return ended(child);
}

async function serve(args) {
  await installPackages(["build", "curl"]);
  await build("perch-cli");
  child = spawn(join(root, "target/release/perch"), ["serve", ...args], {
    stdio: ["inherit", "pipe", "inherit"],
  });
  createInterface({ input: child.stdout }).once("line", (line) => announce(JSON.parse(line)));
  return ended(child);
}

/** One profile for everybody: a model runs many times slower in a build without optimisation. */
async function build(name, ...features) {
  say("Building Perch; the first time takes some minutes…");
  await run("cargo", ["build", "--release", "--locked", "--package", name, ...features], {
    hint: "If a library is missing, install it and try again; otherwise the error above says what is wrong.",
  });
}

/** Where the endpoint is, and a line to try it with. */
function announce({ address, token, models }) {
  const auth = token ? ` -H 'Authorization: Bearer ${token}'` : "";
  const body = JSON.stringify({
    model: models[0],
    stream: true,
    max_tokens: 64,
    messages: [{ role: "user", content: "Hello!" }],
  });
  say(`Address: ${address}/v1`);
  say(`Token:   ${token ?? "none is needed"}`);
  say(`Models:  ${models.join(", ") || "none yet; give a folder with `npm start -- --models DIR`"}`);
  say("Try it in another terminal:");
  if (models.length === 0) say(`  curl -s ${address}/v1/models${auth}`);
  else
    say(
      `  curl -sN ${address}/v1/chat/completions${auth} -H 'Content-Type: application/json' -d '${body.replaceAll("'", "'\\''")}'`,
    );
  say("Ctrl-C ends it.");
}

function ended(program) {
  return new Promise((resolve, reject) => {
    program.on("error", reject);
    program.on("close", (code, signal) =>
      resolve(signal === "SIGINT" || signal === "SIGTERM" ? 0 : (code ?? 1)),
    );
  });
}

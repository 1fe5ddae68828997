// Running other programs, and saying what happens.
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The repository's root, without a slash at the end. */
export const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** Something that the person can mend: `message` says what happened, `hint` what to do. */
export class Problem extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

export function say(text) {
  process.stdout.write(`${text}\n`);
}

/** Whether a program of this name can be started. */
export function has(program) {
  return spawnSync("sh", ["-c", `command -v "${program}"`], { stdio: "ignore" }).status === 0;
}

/** What a program prints, or null when it fails or is not there. */
export function output(program, args, options = {}) {
  const done = spawnSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28, ...options });
  return done.status === 0 ? done.stdout.trim() : null;
}

/** Runs a program to its end with this terminal; throws a Problem with `hint` when it fails. */
export async function run(program, args, { hint, env, quiet = false } = {}) {
  const shown = [program, ...args].join(" ");
  const stdio = quiet ? ["ignore", "pipe", "pipe"] : "inherit";
  const child = spawn(program, args, { cwd: root, stdio, env: { ...process.env, ...env } });
  const said = [];
  child.stdout?.on("data", (part) => said.push(part));
  child.stderr?.on("data", (part) => said.push(part));
  const ending = await new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("close", (code, signal) =>
      resolve(code === 0 ? null : signal ? `ended by ${signal}` : `exit code ${code}`),
    );
  });
  if (ending === null) return;
  if (said.length > 0) process.stderr.write(Buffer.concat(said));
  throw new Problem(`\`${shown}\` failed: ${ending}`, hint);
}

/** Prints a failure the way a person can use it. */
export function tell(error) {
  if (!(error instanceof Problem)) {
    process.stderr.write(`${error.stack ?? error}\n`);
    return;
  }
  process.stderr.write(`${error.message}\n`);
  if (error.hint) process.stderr.write(`→ ${error.hint}\n`);
}

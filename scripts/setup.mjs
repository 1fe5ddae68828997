// What Perch needs from the system, by name, and how it gets there.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
export const cache = join(root, ".cache");

/** Debian packages, by what they are for. */
const debian = {
  core: ["build-essential", "pkg-config"],
  app: ["libwebkit2gtk-4.1-dev", "libayatana-appindicator3-dev", "librsvg2-dev", "libxdo-dev", "libssl-dev", "libdbus-1-dev"],
  desktopTests: ["webkit2gtk-driver", "xvfb", "xauth", "dbus-x11", "xdotool", "openbox", "python3-gi", "gir1.2-gtk-3.0", "fonts-noto-color-emoji"],
  apiTests: ["python3", "python3-venv"],
};

/** An error that is told in plain words and ends the program. */
export class Stop extends Error {}

export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: "inherit", ...options });
  if (result.error) throw new Stop(`${command} could not be started: ${result.error.message}`);
  return result.status ?? 1;
}

export function must(command, args, options = {}) {
  const status = run(command, args, options);
  if (status !== 0) throw new Stop(`${[command, ...args].join(" ")} failed (exit code ${status})`);
}

function has(command, args = ["--version"]) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** Checks Node and Rust, and installs the system's packages for the given purposes. */
export function system(purposes) {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new Stop(`Node ${process.versions.node} is too old: Perch needs 20.19 or newer (https://nodejs.org).`);
  }
  if (!has("cargo")) throw new Stop("Rust is missing: install it from https://rustup.rs and open a new terminal.");
  if (process.platform === "darwin") return macos();
  if (process.platform === "linux") return linux(purposes);
  throw new Stop("Perch runs on macOS and Linux.");
}

function macos() {
  const missing = [];
  if (!has("xcode-select", ["-p"])) missing.push("xcode-select --install");
  if (!has("cmake")) missing.push("brew install cmake");
  if (missing.length > 0) throw new Stop(`Something is missing. Run this once, then start again:\n\n    ${missing.join(" && ")}\n`);
}

function linux(purposes) {
  const wanted = purposes.flatMap((purpose) => debian[purpose]);
  if (!has("dpkg-query")) {
    console.log(`This is no Debian; these packages, or what they are called here, must be there:\n  ${wanted.join(" ")}`);
    return;
  }
  const missing = wanted.filter((name) => {
    const query = spawnSync("dpkg-query", ["-W", "-f=${Status}", name], { encoding: "utf8" });
    return !query.stdout?.includes("ok installed");
  });
  if (missing.length === 0) return;
  console.log(`Installing what is missing from the system: ${missing.join(" ")}`);
  const sudo = process.getuid() === 0 ? [] : ["sudo"];
  const apt = (...args) => {
    const [command, ...rest] = [...sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", ...args];
    const result = spawnSync(command, rest, { cwd: root, encoding: "utf8", stdio: ["inherit", "pipe", "pipe"] });
    if (result.status !== 0) throw new Stop(`apt-get ${args[0]} failed:\n${result.stderr ?? result.error}`);
  };
  apt("update");
  apt("install", "-y", "--no-install-recommends", ...missing);
}

/** Installs the UI's packages when the lock file has changed since. */
export function nodeModules() {
  const lock = createHash("sha256").update(readFileSync(join(root, "package-lock.json"))).digest("hex");
  const stamp = join(root, "node_modules", ".perch-lock");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  console.log("Installing the UI's packages");
  must("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
  writeFileSync(stamp, lock);
}

/** A Python environment with pinned packages, made once for each list. */
export function python(name, packages) {
  const folder = join(cache, `python-${name}`);
  const stamp = join(folder, "packages");
  const list = packages.join("\n");
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== list) {
    mkdirSync(cache, { recursive: true });
    must("python3", ["-m", "venv", "--clear", folder]);
    must(join(folder, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", ...packages]);
    writeFileSync(stamp, list);
  }
  return join(folder, "bin/python");
}

/** Standard output of a command. */
export function output(command, args) {
  return execFileSync(command, args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28 });
}

// Installing what is missing. Every function does nothing where nothing is missing.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { has, output, Problem, root, run, say } from "./run.mjs";

/** Packages by what they are for; the names are Debian's and Ubuntu's. */
export const packages = {
  build: { why: "compile Rust and C", names: ["build-essential", "pkg-config"] },
  curl: { why: "talk to the endpoint", names: ["curl", "ca-certificates"] },
  window: {
    why: "show the window and the tray icon",
    names: ["libwebkit2gtk-4.1-dev", "libayatana-appindicator3-dev", "librsvg2-dev", "libdbus-1-dev"],
  },
  python: { why: "install Python tools for the tests", names: ["python3-venv"] },
  browser: { why: "test the UI's screens", names: ["chromium", "fonts-dejavu-core"] },
  desktop: {
    why: "drive the real window",
    names: [
      "webkit2gtk-driver",
      "xvfb",
      "openbox",
      "xdotool",
      "dbus-daemon",
      "python3-gi",
      "gir1.2-gtk-3.0",
      "procps",
    ],
  },
  macos: {
    why: "type-check for macOS",
    names: ["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy"],
  },
};

/** Refuses a Node that is too old and says where a Rust can be had. */
export function checkTools() {
  const wanted = [20, 19];
  const here = process.versions.node.split(".").map(Number);
  if (here[0] < wanted[0] || (here[0] === wanted[0] && here[1] < wanted[1])) {
    throw new Problem(
      `Perch needs Node ${wanted.join(".")} or newer; this is ${process.versions.node}.`,
      "Install a newer one from https://nodejs.org/ or with your package manager.",
    );
  }
  const cargo = `${process.env.HOME}/.cargo/bin`;
  if (!has("cargo") && existsSync(`${cargo}/cargo`)) process.env.PATH = `${cargo}:${process.env.PATH}`;
  if (!has("cargo")) {
    throw new Problem(
      "Perch needs Rust, and there is no `cargo`.",
      "Install it from https://rustup.rs/ and try again.",
    );
  }
  checkRust();
}

/** With rustup the toolchain file decides and rustup fetches it; any other Rust must be new enough. */
function checkRust() {
  const version = output("rustc", ["--version"]);
  if (version === null) {
    throw new Problem(
      "`rustc --version` failed in this folder.",
      "With rustup, run `rustup show` here: it fetches the toolchain that rust-toolchain.toml names.",
    );
  }
  const wanted = readFileSync(join(root, "Cargo.toml"), "utf8").match(/^rust-version = "(\d+)\.(\d+)/m);
  const here = version.match(/rustc (\d+)\.(\d+)/);
  if (Number(here[1]) === Number(wanted[1]) && Number(here[2]) < Number(wanted[2])) {
    throw new Problem(
      `Perch needs Rust ${wanted[1]}.${wanted[2]} or newer; this is ${version}.`,
      "Install one from https://rustup.rs/: distributions carry older ones.",
    );
  }
}

/** Installs what is missing of the groups (keys of `packages`), or says how. */
export async function installPackages(groups) {
  if (process.platform === "darwin") return checkMac();
  if (process.platform !== "linux") {
    throw new Problem("Perch runs on macOS and Linux.", "On Windows, use WSL 2 with Debian.");
  }
  if (!has("apt-get")) {
    const all = groups.flatMap((group) => packages[group].names);
    say(`No apt-get here: nothing is installed. Perch needs what Debian calls ${all.join(", ")}.`);
    return;
  }
  const missing = groups
    .map((group) => ({ ...packages[group], names: packages[group].names.filter((name) => !installed(name)) }))
    .filter(({ names }) => names.length > 0);
  if (missing.length === 0) return;
  say("Installing what is missing:");
  for (const { why, names } of missing) say(`  to ${why}: ${names.join(" ")}`);
  const names = missing.flatMap((group) => group.names);
  const sudo = process.getuid() === 0 ? [] : ["sudo"];
  if (sudo.length > 0 && !has("sudo")) {
    throw new Problem(
      "Installing packages needs root, and there is no sudo.",
      `As root: apt-get install -y ${names.join(" ")}`,
    );
  }
  const apt = async (...args) => {
    const [program, ...rest] = [
      ...sudo,
      "env",
      "DEBIAN_FRONTEND=noninteractive",
      "apt-get",
      "-q",
      "-o",
      "Dpkg::Use-Pty=0",
      ...args,
    ];
    await run(program, rest, {
      quiet: sudo.length === 0,
      hint: `Mend what apt-get says, or install by hand: ${names.join(" ")}`,
    });
  };
  await apt("update");
  await apt("install", "-y", "--no-install-recommends", ...names);
}

function installed(name) {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is dpkg-query that fills this in.
  return output("dpkg-query", ["-W", "-f=${db:Status-Status}", name]) === "installed";
}

function checkMac() {
  const missing = [];
  if (output("xcode-select", ["-p"]) === null) missing.push("xcode-select --install");
  if (!has("cmake")) missing.push("brew install cmake");
  if (missing.length === 0) return;
  throw new Problem(
    "Perch needs Xcode's command-line tools and cmake.",
    `Run this, then try again: ${missing.join(" && ")}`,
  );
}

/** `npm ci`, unless node_modules is what package-lock.json says already. */
export async function installNodeModules() {
  const lock = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  const mark = join(root, "node_modules", ".perch-lock");
  if (existsSync(mark) && readFileSync(mark, "utf8") === lock) return;
  say("Installing the UI's packages (npm ci)…");
  await run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    hint: "Check the connection to the npm registry and try again.",
  });
  writeFileSync(mark, lock);
}

/** A Python environment under .cache with these packages (`name==version`); returns its folder. */
export async function pythonEnvironment(name, requirements) {
  const folder = join(root, ".cache", `python-${name}`);
  const mark = join(folder, "requirements");
  const wanted = requirements.join("\n");
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return folder;
  say(`Installing ${requirements.join(" ")} into ${folder.slice(root.length + 1)}…`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(root, ".cache"), { recursive: true });
  const python = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
  await run(python, ["-m", "venv", folder], { quiet: true, hint: "Install python3-venv." });
  await run(join(folder, "bin/pip"), ["install", "-q", "--disable-pip-version-check", ...requirements], {
    quiet: true,
    hint: "Check the connection to PyPI and try again.",
  });
  writeFileSync(mark, wanted);
  return folder;
}

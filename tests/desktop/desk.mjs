// A desktop of its own for the tests: display, window manager, message bus, tray, home. Nothing of it outlives them.
import { execFileSync, spawn } from "node:child_process";
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { eventually, Page } from "./webdriver.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const binary = process.env.PERCH_APP ?? join(here, "../../target/debug/perch-app");
// Debian's own Python is the one that has the GObject bindings.
const python = "/usr/bin/python3";

export class Desk {
  /** A new desktop; what the programs print goes into `results`. */
  static async start(results) {
    const desk = new Desk();
    desk.home = mkdtempSync(join(tmpdir(), "perch-desktop-"));
    desk.results = results;
    desk.programs = [];
    const folder = (name) => {
      mkdirSync(join(desk.home, name), { recursive: true, mode: 0o700 });
      return join(desk.home, name);
    };
    desk.env = {
      PATH: process.env.PATH,
      LANG: "C.UTF-8",
      HOME: desk.home,
      XDG_CONFIG_HOME: folder("config"),
      XDG_DATA_HOME: folder("data"),
      XDG_CACHE_HOME: folder("cache"),
      XDG_RUNTIME_DIR: folder("run"),
      PERCH_HOME: folder("perch"),
      PERCH_SECRETS: "memory",
      GDK_BACKEND: "x11",
      NO_AT_BRIDGE: "1",
      RUST_BACKTRACE: "1",
    };
    const display = desk.#spawn("Xvfb", [
      "-displayfd",
      "1",
      "-screen",
      "0",
      "1280x900x24",
      "-nolisten",
      "tcp",
    ]);
    desk.env.DISPLAY = `:${await firstLine(display)}`;
    const bus = desk.#spawn("dbus-daemon", ["--session", "--nofork", "--print-address"]);
    desk.env.DBUS_SESSION_BUS_ADDRESS = await firstLine(bus);
    desk.#spawn("openbox", []);
    desk.tray = desk.#spawn(python, [join(here, "tray_host.py")]);
    await firstLine(desk.tray);
    return desk;
  }

  /** Starts the app under a driver, in a light or dark desktop, and gives its page. */
  async open(look) {
    const port = await freePort();
    const theme = look === "dark" ? "Adwaita:dark" : "Adwaita";
    this.driver = this.#spawn("WebKitWebDriver", [`--port=${port}`], {
      TAURI_AUTOMATION: "true",
      TAURI_WEBVIEW_AUTOMATION: "true",
      GTK_THEME: theme,
    });
    const server = `http://127.0.0.1:${port}`;
    await eventually("the driver", () => fetch(`${server}/status`).then((answer) => answer.ok));
    return Page.open(server, binary);
  }

  /** Ends the app as a person would, from the tray's menu, and waits until it is gone. */
  async quit() {
    const app = this.app();
    await this.clickTray("Quit Perch");
    await eventually("Perch to end", () => !isRunning(app));
    await stop(this.driver);
  }

  /** Ends the app as a crash would. */
  async kill() {
    const app = this.app();
    process.kill(app, "SIGKILL");
    await eventually("Perch to be gone", () => !isRunning(app));
    await stop(this.driver);
  }

  /** The process id of the app that the driver started. */
  app() {
    const children = readFileSync(`/proc/${this.driver.pid}/task/${this.driver.pid}/children`, "utf8");
    const app = children
      .split(" ")
      .find((pid) => pid && readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("perch-app"));
    if (!app) throw new Error("the app is not running");
    return Number(app);
  }

  /** Starts the app once more, as from a launcher, and gives how that start ended. */
  startAgain() {
    const second = this.#spawn(binary, []);
    return new Promise((resolve) => second.on("close", resolve));
  }

  async clickTray(label) {
    const answer = firstLine(this.tray);
    this.tray.stdin.write(`${label}\n`);
    const said = await answer;
    if (said !== "clicked") throw new Error(`tray item ${label}: ${said}`);
  }

  /** Whether Perch's window is on the screen. */
  isShown() {
    return this.#windows("^Perch$", "--onlyvisible").length > 0;
  }

  /** Closes Perch's window with the keyboard: again where the window manager was not ready for the key yet. */
  async closeWindow() {
    await eventually("the window to close", async () => {
      const window = this.#windows("^Perch$", "--onlyvisible").at(-1);
      if (window === undefined) return true;
      this.#x("windowactivate", window);
      await pause(200);
      this.#x("key", "alt+F4");
      await pause(800);
      return !this.isShown();
    });
  }

  /** Drags `path` out of a window onto Perch's, with the mouse; `over` runs before the button is let go. */
  async drop(path, over) {
    const source = this.#spawn(python, [join(here, "drag_source.py"), path]);
    const from = await eventually("the drag source", () =>
      this.#windows("^perch-drag-source$", "--onlyvisible").at(-1),
    );
    const to = this.#windows("^Perch$", "--onlyvisible").at(-1);
    this.#x("windowmove", "--sync", to, 20, 40);
    this.#x("windowmove", "--sync", from, 900, 100);
    this.#x("windowraise", from);
    const start = this.#place(from);
    const goal = this.#place(to);
    const [x, y, toX, toY] = [start.X + 70, start.Y + 50, goal.X + 200, goal.Y + 250];
    this.#x("mousemove", "--sync", x, y);
    this.#x("mousedown", 1);
    // A drag begins only once the mouse has moved a little, and its target learns of it move by move.
    for (let step = 1; step <= 20; step++) {
      this.#x("mousemove", Math.round(x + ((toX - x) * step) / 20), Math.round(y + ((toY - y) * step) / 20));
      await pause(20);
    }
    for (let step = 1; step <= 5; step++) {
      this.#x("mousemove", toX + step, toY);
      await pause(40);
    }
    await over?.();
    this.#x("mouseup", 1);
    return () => stop(source);
  }

  /** Ends everything and removes the home. */
  async end() {
    for (const program of this.programs.reverse()) await stop(program);
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }

  #windows(name, ...options) {
    try {
      return this.#x("search", ...options, "--name", name)
        .split("\n")
        .filter(Boolean);
    } catch {
      return [];
    }
  }

  #place(window) {
    const lines = this.#x("getwindowgeometry", "--shell", window).split("\n");
    return Object.fromEntries(
      lines.map((line) => line.split("=")).map(([key, value]) => [key, Number(value)]),
    );
  }

  #x(...words) {
    const options = { env: this.env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: 10_000 };
    return execFileSync("xdotool", words.map(String), options).trim();
  }

  /** Starts a program in a process group of its own, so that what it starts can be ended with it. */
  #spawn(program, args, env = {}) {
    const log = createWriteStream(join(this.results, "desktop.log"), { flags: "a" });
    const child = spawn(program, args, { env: { ...this.env, ...env }, detached: true });
    child.on("error", (error) => log.write(`${program}: ${error.message}\n`));
    child.stderr.pipe(log);
    if (!["Xvfb", "dbus-daemon", python].includes(program)) child.stdout.pipe(log, { end: false });
    this.programs.push(child);
    return child;
  }
}

function firstLine(child) {
  return new Promise((resolve, reject) => {
    const lines = createInterface({ input: child.stdout });
    lines.once("line", (line) => {
      resolve(line);
      lines.close();
    });
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`${child.spawnfile} ended with ${code}`)));
  });
}

/** Ends a program and all that it started. */
async function stop(child) {
  if (child.exitCode === null && child.signalCode === null && child.pid) {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    signal(child, "SIGTERM");
    await Promise.race([ended, pause(3000)]);
  }
  signal(child, "SIGKILL");
}

function signal(child, name) {
  try {
    process.kill(-child.pid, name);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

function isRunning(pid) {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export { freePort };

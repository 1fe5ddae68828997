// Runs the built page with the fake backend in a browser, under the app's content security policy:
// every screen in light, in dark, and at its smallest.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build, preview } from "vite";
import { screens } from "./screens.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const looks = [
  { colorScheme: "light", viewport: { width: 420, height: 640 } },
  { colorScheme: "dark", viewport: { width: 420, height: 640 } },
  { colorScheme: "light", viewport: { width: 360, height: 480 } },
];
// As in the app, less the addresses of its own protocols.
const policy =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "object-src 'none'; base-uri 'none'; form-action 'none'; frame-src 'none'";

await build({ root, mode: "fake", logLevel: "warn", build: { outDir: "dist-fake" } });
const server = await preview({
  root,
  logLevel: "warn",
  build: { outDir: "dist-fake" },
  preview: { host: "127.0.0.1", port: 0, headers: { "Content-Security-Policy": policy } },
});
const origin = new URL(server.resolvedUrls?.local[0] ?? "").origin;
const browser = await chromium.launch({
  executablePath: findBrowser(),
  args: ["--headless=new", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
});

const failures = [];
try {
  for (const look of looks) {
    for (const [name, screen] of Object.entries(screens)) {
      const where = `${name}, ${look.colorScheme}, ${look.viewport.width}×${look.viewport.height}`;
      const problems = await visit(screen, look).catch((error) => [String(error)]);
      failures.push(...problems.map((problem) => `${where}: ${problem}`));
    }
  }
} finally {
  await browser.close();
  await server.close();
}
for (const failure of failures) process.stderr.write(`${failure}\n`);
process.stdout.write(`${Object.keys(screens).length} screens, ${failures.length} problems\n`);
process.exitCode = failures.length === 0 ? 0 : 1;

/** Opens a screen, does there what it says, and returns everything that is wrong with it. */
async function visit(screen, options) {
  const context = await browser.newContext({ ...options, reducedMotion: "reduce", locale: "en-GB" });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (said) => {
    if (["error", "warning"].includes(said.type())) problems.push(`console: ${said.text()}`);
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) problems.push(`fetched ${request.url()}`);
  });
  try {
    await page.goto(`${origin}/?scene=${screen.scene ?? "furnished"}`);
    await page.waitForSelector("body[data-ready='1']");
    await screen.act(page);
    problems.push(...(await overflow(page)), ...(await accessibility(page)));
  } finally {
    await context.close();
  }
  return problems;
}

/** Nothing may stand out of the window sideways. */
async function overflow(page) {
  const wide = await page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll("main, .messages-scroll, .sheet, .panel, .bar")]
      .filter((element) => element.scrollWidth > element.clientWidth + 1)
      .map((element) => element.className || element.tagName),
  );
  return wide.map((what) => `too wide: ${what}`);
}

async function accessibility(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document));
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, any }) => `${html} ${any[0]?.message ?? ""}`).join("; ")}`,
  );
}

function findBrowser() {
  const places = [
    process.env.PERCH_BROWSER,
    "/usr/bin/chromium",
    "/usr/bin/google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
  ];
  const found = places.find((place) => place && existsSync(place));
  assert(found, "No Chromium was found; install it, or name its executable in PERCH_BROWSER.");
  return found;
}

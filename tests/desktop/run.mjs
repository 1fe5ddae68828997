// Drives the real app in a real window: mouse, keyboard, tray, a folder dropped, another program on the endpoint.
// `--screenshots` keeps the pictures that it takes in docs/screenshots/ as well.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Desk, freePort } from "./desk.mjs";
import { writeRecital } from "./recital.mjs";
import { eventually } from "./webdriver.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const results = join(root, "test-results/desktop");
const python = process.env.PERCH_PYTHON ?? "python3";
const enter = "\uE007";
const answer = `A kingfisher enters the water almost **without a splash**, and its beak is why.

1. The beak is a long wedge that parts the water little by little.
2. Pressure grows gently, so no wave runs ahead of it.
3. Folded wings leave nothing behind that could catch.

Engineers gave the same shape to the nose of a fast train:

\`\`\`python
def splash(speed, width):
    return speed**2 * width
\`\`\`

It became quieter, and used less power.`;

rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });
const desk = await Desk.start(results);
for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, () => desk.end().finally(() => process.exit(1)));
let page;
try {
  await main();
  if (process.argv.includes("--screenshots")) {
    cpSync(results, join(root, "docs/screenshots"), {
      recursive: true,
      filter: (path) => !path.endsWith(".log"),
    });
  }
} catch (error) {
  process.stderr.write(`${error.stack}\n`);
  await page?.screenshot().then(
    (picture) => writeFileSync(join(results, "failure.png"), picture),
    () => {},
  );
  process.exitCode = 1;
} finally {
  await desk.end();
}

async function main() {
  // A space and an emoji, as people's folders have.
  const models = join(desk.home, "my models 🐦");
  const kingfisher = join(models, "Kingfisher-88M");
  const songbird = join(models, "Songbird-88M");
  writeRecital(kingfisher, answer);
  writeRecital(songbird, answer, { endless: true });

  page = await desk.open("light");
  await scene(
    "a first start shows what to do, and one click on the tray's menu item the window",
    async () => {
      assert.match(await page.text(), /Bring a model to Perch/);
      await shot("empty-light");
      await desk.closeWindow();
      await desk.clickTray("Open Perch");
      await eventually("the window to open", () => desk.isShown());
    },
  );

  await scene("a folder dropped on the window is judged and added", () =>
    add(kingfisher, "Kingfisher-88M", "light"),
  );

  await scene("a message is answered piece by piece", async () => {
    await send("How does a kingfisher dive?");
    await growing();
    await shot("writing-light");
    await finished();
    const text = await page.text();
    assert.match(text, /without a splash/);
    assert.match(text, /used less power\./);
    assert.match(text, /tokens · /);
    await shot("chat-light");
  });

  await scene("a file inside a folder serves as well, and stop keeps what was written", async () => {
    await add(join(songbird, "config.json"), "Songbird-88M");
    await page.click("button", "New chat");
    await send("Sing until I say stop");
    await growing();
    await page.click("button", "Stop");
    await finished();
    assert.match(await page.text(), /Stopped/);
    assert.match(await reply(), /A kingfisher enters/);
  });

  await scene("another program streams from the endpoint while the window is chatting", async () => {
    await page.click("button", "Settings");
    await setPort(await freePort());
    await page.click("switch", "Serve other apps");
    const address = await eventually(
      "the address",
      async () => (await page.text()).match(/http:\/\/\S+\/v1/)?.[0],
    );
    await page.click("button", "Show token");
    const token = await eventually(
      "the token",
      async () => (await page.text()).match(/perch-[0-9a-f]{32,}/)?.[0],
    );
    await page.click("button", "Hide token");
    await shot("settings-light");
    await page.click("button", "Back");
    await send("Sing again");
    await growing();
    const before = (await reply()).length;
    const said = await client(address, token, "Songbird-88M");
    assert.match(said, /^A kingfisher enters the water/);
    assert.ok(await isReplying(), "the window was still chatting");
    assert.ok((await reply()).length > before, "the window's reply went on meanwhile");
    await page.click("button", "Stop");
    await finished();
    await assert.rejects(client(address, "perch-wrong", "Songbird-88M"), /401/);
  });

  await scene("a second start shows the first one's window and ends", async () => {
    await desk.closeWindow();
    assert.equal(await desk.startAgain(), 0);
    await eventually("the window to open", () => desk.isShown());
  });

  await scene("conversations are listed", async () => {
    await page.click("button", "History");
    await eventually("both conversations", async () => {
      const text = await page.text();
      return text.includes("How does a kingfisher dive?") && text.includes("Sing until I say stop");
    });
    await shot("history-light");
    await page.click("button", "Back");
  });

  let written = "";
  await scene("a crash keeps what had been written", async () => {
    await page.click("button", "New chat");
    await send("Sing until you fall");
    await growing();
    written = await reply();
    await desk.kill();
    page = await desk.open("dark");
    await openConversation("Sing until you fall");
    const kept = await reply();
    const heads = [kept, written].map((text) => text.replace(/\s+/g, " ").slice(0, 40));
    assert.equal(heads[0], heads[1]);
    assert.match(await page.text(), /Perch closed before this reply was finished/);
  });

  await scene("everything is there after a proper end, too, in the dark", async () => {
    await page.click("button", "New chat");
    await shot("start-dark");
    await desk.quit();
    page = await desk.open("dark");
    await openConversation("How does a kingfisher dive?");
    assert.match(await reply(), /used less power\./);
    await shot("chat-dark");
    await page.click("button", "Settings");
    await page.find("switch", "Serve other apps");
    await shot("settings-dark");
    await page.click("button", "Back");
    await page.click("button", "Choose a model");
    await page.find("dialog", "Models");
    await shot("models-dark");
    await desk.quit();
  });
}

async function scene(title, act) {
  const began = Date.now();
  await act();
  process.stdout.write(`✓ ${title} (${((Date.now() - began) / 1000).toFixed(1)} s)\n`);
}

async function shot(name) {
  writeFileSync(join(results, `${name}.png`), await page.screenshot());
}

/** Drops `path` and adds the model that it is. */
async function add(path, name, look) {
  const release = await desk.drop(path, () => page.find("region", "Drop a model"));
  await page.find("dialog", "Dropped models");
  await page.find("button", "Add to Perch");
  if (look) await shot(`verdict-${look}`);
  await page.click("button", "Add to Perch");
  await eventually(
    "the verdict to go",
    async () => (await page.all("dialog", "Dropped models")).length === 0,
  );
  await eventually("the model to be chosen", async () => (await page.text()).includes(name));
  await release();
}

async function send(text) {
  await page.type("textbox", "Message", text + enter);
}

function isReplying() {
  return page.run(`return document.querySelector('article[aria-label="Reply"][aria-busy="true"]') !== null`);
}

/** The text of the last reply. */
function reply() {
  return page.run(
    `return [...document.querySelectorAll('article[aria-label="Reply"] .answer')].at(-1)?.innerText ?? ""`,
  );
}

/** Waits until the last reply has become longer twice while it is being written. */
async function growing() {
  let length = 0;
  for (let grown = 0; grown < 2; grown++) {
    length = await eventually("the reply to grow", async () => {
      const now = (await reply()).length;
      return (await isReplying()) && now > length && now;
    });
  }
}

function finished() {
  return eventually("the reply to end", async () => !(await isReplying()));
}

async function setPort(port) {
  await page.run("document.querySelector('input[aria-label=Port]')?.select()");
  await page.type("textbox", "Port", `${port}${enter}`);
}

async function openConversation(title) {
  await page.click("button", "History");
  await eventually(`the conversation “${title}”`, () =>
    page.run(
      `const found = [...document.querySelectorAll("button")].find((one) => one.innerText.startsWith(arguments[0]));
       found?.click();
       return found !== undefined`,
      title,
    ),
  );
  await page.find("article", "Reply");
  await eventually("its reply", async () => (await reply()) !== "");
}

/** What another program gets from the endpoint; rejects with what it says when it fails. */
function client(address, token, model) {
  const script = fileURLToPath(new URL("openai_client.py", import.meta.url));
  const child = spawn(python, [script, address, token, model], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  let complaint = "";
  child.stdout.on("data", (part) => (said += part));
  child.stderr.on("data", (part) => (complaint += part));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(said) : reject(new Error(complaint))));
  });
}

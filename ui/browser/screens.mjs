// The screens of the UI and how a person gets to each. `perchFake` is the page's fake backend.
import assert from "node:assert/strict";

const settled = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

async function openConversation(page, title) {
  await page.getByRole("button", { name: "History" }).click();
  await page.getByText(title, { exact: true }).click();
  await page.getByRole("log").waitFor();
}

async function dropPaths(page, ...paths) {
  await page.evaluate((dropped) => perchFake.drop({ kind: "drop", paths: dropped }), paths);
  await page.getByRole("dialog").waitFor();
}

const bottomGap = (page) =>
  page.getByRole("log").evaluate((log) => log.scrollHeight - log.clientHeight - log.scrollTop);

export const screens = {
  "no model": { scene: "empty", act: settled },

  "new chat": { act: settled },

  models: {
    act: async (page) => {
      await page.getByTitle("Choose a model").click();
      await page.getByRole("dialog", { name: "Models" }).waitFor();
    },
  },

  "formatted text": {
    act: async (page) => {
      await openConversation(page, "How a kingfisher dives");
      await page.locator("pre span[style]").first().waitFor();
      assert.equal(await page.locator("article img").count(), 0);
    },
  },

  thought: {
    act: async (page) => {
      await openConversation(page, "How a kingfisher dives");
      await page.getByText("Thoughts").click();
      await page.getByText("I should keep it short.").waitFor();
    },
  },

  endings: {
    act: async (page) => {
      await openConversation(page, "Ways to end");
      await page.getByRole("alert").waitFor();
    },
  },

  "a reply from sending to stopping": {
    act: async (page) => {
      await page.getByRole("textbox", { name: "Message" }).fill("How does it dive?");
      await page.keyboard.press("Enter");
      await page.getByText(/Reading \d/).waitFor();
      await page.getByText("23 tok/s").waitFor();
      await page.keyboard.press("Escape");
      await page.getByText("Stopped").waitFor();
      assert.equal(await page.evaluate(() => perchFake.hidden), 0);
    },
  },

  "a long reply that is followed, left and followed again": {
    act: async (page) => {
      await openConversation(page, "Still being written");
      const grow = () =>
        page.evaluate(() => {
          const append = "\n\nAnd then some more of it, ".repeat(12);
          perchFake.emit("r2", { kind: "text", append, tokensPerSecond: 9, tokens: 1 });
        });
      for (let times = 0; times < 4; times++) {
        await grow();
        await settled(page);
      }
      await page.waitForFunction(() => {
        const log = document.querySelector("[role=log]");
        return log.scrollTop > 0 && log.scrollHeight - log.clientHeight - log.scrollTop < 2;
      });
      await page.getByRole("log").hover();
      await page.mouse.wheel(0, -200);
      const jump = page.getByRole("button", { name: "Jump to latest" });
      await jump.waitFor();
      const before = await page.getByRole("log").evaluate((log) => log.scrollTop);
      await grow();
      await settled(page);
      assert.equal(await page.getByRole("log").evaluate((log) => log.scrollTop), before);
      await jump.click();
      await jump.waitFor({ state: "hidden" });
      assert(Math.abs(await bottomGap(page)) < 2);
    },
  },

  "a long draft": {
    act: async (page) => {
      const field = page.getByRole("textbox", { name: "Message" });
      await field.fill("A line of a long draft\n".repeat(30));
      const { height } = await field.boundingBox();
      assert(height > 100 && height < 180, `the field is ${height} px high`);
    },
  },

  history: {
    act: async (page) => {
      await page.getByRole("button", { name: "History" }).click();
      await page.getByRole("button", { name: "Rename “Ways to end”" }).click();
      await page.getByRole("button", { name: "Delete “Why bread needs salt”" }).click();
      await page.getByText("Delete for good?").waitFor();
    },
  },

  settings: {
    act: async (page) => {
      await page.getByRole("button", { name: "Settings" }).click();
      await page.getByRole("switch", { name: "Serve other apps" }).click();
      await page.getByRole("button", { name: "Show token" }).click();
      await page.getByRole("button", { name: "Renew token" }).click();
      await page.getByRole("button", { name: "Copy curl line" }).waitFor();
    },
  },

  "a port that is taken": {
    act: async (page) => {
      await page.evaluate(() => {
        const error = { code: "port_in_use", message: "Port 11711 is in use.", hint: "Choose another port." };
        perchFake.change({ endpoint: { enabled: true, port: 11711, address: null, error } });
      });
      await page.getByRole("button", { name: "Settings" }).click();
      await page.getByRole("alert").waitFor();
      await page.getByRole("textbox", { name: "Port" }).fill("80");
      await page.getByText("1024 to 65535").waitFor();
    },
  },

  "dragging over the window": {
    act: async (page) => {
      await page.evaluate(() => perchFake.drop({ kind: "over" }));
      await page.getByText("Drop to see what this is").waitFor();
    },
  },

  verdict: {
    act: async (page) => {
      await dropPaths(page, "/Users/robin/Models/Qwen3-4B-4bit");
      await page.getByRole("button", { name: "Add to Perch" }).waitFor();
    },
  },

  "bad verdicts": {
    act: async (page) => {
      await dropPaths(page, "/Volumes/Blue disk 🐦/Llama-3.2-3B", "/tmp/holiday photos");
      await page.getByText("This folder holds no model.").waitFor();
    },
  },

  "adding a model": {
    act: async (page) => {
      await dropPaths(page, "/Users/robin/Models/Qwen3-4B-4bit");
      await page.getByRole("button", { name: "Add to Perch" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      assert.match(await page.getByTitle("Choose a model").textContent(), /Qwen3-4B-4bit/);
    },
  },
};

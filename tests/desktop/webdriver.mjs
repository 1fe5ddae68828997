// A small WebDriver client: what the desktop tests need of the protocol, over fetch.
import { setTimeout as pause } from "node:timers/promises";

const elementKey = "element-6066-11e4-a52e-4f735466cecf";
/** How long anything may take before it counts as never. */
const patience = 30_000;

/** Asks `probe` again and again until it gives something true; `what` names it in the error. */
export async function eventually(what, probe, limit = patience) {
  const end = Date.now() + limit;
  let last = "";
  for (;;) {
    try {
      const value = await probe();
      if (value) return value;
    } catch (error) {
      last = `; last: ${error.message}`;
    }
    if (Date.now() > end) throw new Error(`waited ${limit / 1000} s in vain for ${what}${last}`);
    await pause(50);
  }
}

/** The app's page. Elements are found by role and accessible name, as a person would. */
export class Page {
  constructor(server, session) {
    this.server = server;
    this.session = session;
  }

  /** Starts `binary` under a driver that listens at `server`, and waits until its page shows the first state. */
  static async open(server, binary) {
    const capabilities = { alwaysMatch: { "webkitgtk:browserOptions": { binary, args: [] } } };
    const { sessionId } = await call(server, "POST", "/session", { capabilities });
    const page = new Page(server, sessionId);
    await eventually("the page to be ready", () => page.run("return document.body.dataset.ready === '1'"));
    return page;
  }

  async close() {
    await this.#call("DELETE", "");
  }

  /** Runs a function body in the page; `arguments` are `args`. */
  run(script, ...args) {
    return this.#call("POST", "/execute/sync", { script, args });
  }

  /** What is on the screen as text. */
  text() {
    return this.run("return document.body.innerText");
  }

  /** Waits for an element of this role whose accessible name is `name` (any without one); the last of them with `last`. */
  async find(role, name = null) {
    const found = await eventually(`${role} “${name ?? "any"}”`, () =>
      this.all(role, name).then((all) => all.at(-1)),
    );
    return found;
  }

  /** All elements of this role and name that are there now. */
  all(role, name = null) {
    return this.run(findByRole, role, name);
  }

  async click(role, name = null) {
    const what = `${role} “${name ?? "any"}” to be clicked`;
    await eventually(what, async () => {
      const element = (await this.all(role, name)).at(-1);
      if (!element || (await this.run("return arguments[0].disabled === true", element))) return false;
      await this.#call("POST", `/element/${element[elementKey]}/click`, {});
      return true;
    });
  }

  /** Types as on a keyboard; "\uE007" is Enter. */
  async type(role, name, text) {
    const element = await this.find(role, name);
    await this.#call("POST", `/element/${element[elementKey]}/value`, { text });
  }

  /** A picture of the page, as PNG. The two frames make sure that it is not an old one. */
  async screenshot() {
    const frames =
      "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(1)))";
    await this.#call("POST", "/execute/async", { script: frames, args: [] });
    return Buffer.from(await this.#call("GET", "/screenshot"), "base64");
  }

  #call(method, path, body) {
    return call(this.server, method, `/session/${this.session}${path}`, body);
  }
}

async function call(server, method, path, body) {
  const response = await fetch(server + path, {
    method,
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(2 * patience),
  });
  const { value } = await response.json();
  if (!response.ok) throw new Error(`${value.error}: ${value.message}`);
  return value;
}

/** Runs in the page: the roles and names that Perch uses, by the rules of accessible names that it needs. */
const findByRole = `
  const [role, name] = arguments;
  const tags = {
    button: "button", textbox: "textarea, input:not([type]), input[type=text], input[type=number]",
    article: "article", dialog: "dialog", region: "section", switch: "input[role=switch]", alert: "", list: "ul",
  };
  const selector = [tags[role], '[role="' + role + '"]'].filter(Boolean).join(", ");
  const nameOf = (element) =>
    (element.getAttribute("aria-label") ??
      document.getElementById(element.getAttribute("aria-labelledby"))?.innerText ??
      element.labels?.[0]?.innerText ?? (element.innerText || element.title) ?? "").trim();
  const seen = (element) => element.getClientRects().length > 0;
  return [...document.querySelectorAll(selector)].filter(
    (element) => seen(element) && (name === null || nameOf(element) === name || element.title === name));
`;

import { type Backend, BackendError, type DropEvent } from "./backend";
import type {
  AppState,
  Conversation,
  ConversationSummary,
  EndpointState,
  Message,
  ModelState,
  Page,
  ReplyEvent,
  SentMessage,
  Verdict,
} from "./bindings";

/** A world with no models and no conversations. */
export function emptyState(): AppState {
  return {
    version: "0.1.0",
    machine: {
      chip: "Intel Core i5-1235U",
      appleSilicon: false,
      memoryBytes: 16 * 2 ** 30,
      engine: "cpu",
      reason: "CPU with AVX2, FMA and F16C: this build has no MLX.",
    },
    models: [],
    selectedModel: null,
    endpoint: { enabled: false, port: 11711, address: null, error: null },
    conversations: [],
  };
}

/**
 * A shell in memory, for tests and for working on the UI in a browser.
 *
 * It keeps conversations, models and the endpoint's state as the real one does. What a reply says comes
 * from `emit`, or from `onSend` where one is given.
 */
export class FakeBackend implements Backend {
  /** Called after a message was saved and its reply begun. */
  onSend: ((sent: SentMessage, text: string) => void) | null = null;
  /** What `inspectPath` finds, by path. */
  verdicts = new Map<string, Verdict>();
  /** The addresses that were opened. */
  opened: string[] = [];
  hidden = 0;
  token = "prch-3f9c2a7d51e84b06";

  private readonly stateListeners = new Set<(state: AppState) => void>();
  private readonly pageListeners = new Set<(page: Page) => void>();
  private readonly dropListeners = new Set<(event: DropEvent) => void>();
  private readonly replyListeners = new Map<string, Set<(event: ReplyEvent) => void>>();
  private readonly conversations = new Map<string, Conversation>();
  private nextId = 1;

  constructor(public state: AppState = emptyState()) {}

  // ---- What a test or a demonstration does to it.

  change(change: Partial<AppState>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.stateListeners) listener(this.state);
  }

  requestPage(page: Page): void {
    for (const listener of this.pageListeners) listener(page);
  }

  drop(event: DropEvent): void {
    for (const listener of this.dropListeners) listener(event);
  }

  addConversation(conversation: Conversation, updatedAt: number): void {
    this.conversations.set(conversation.id, conversation);
    const summary: ConversationSummary = {
      id: conversation.id,
      title: conversation.title,
      updatedAt,
      replying: conversation.messages.find(({ state }) => state === "streaming")?.id ?? null,
    };
    this.change({ conversations: [summary, ...this.state.conversations] });
  }

  setModelState(id: string, state: ModelState): void {
    this.change({
      models: this.state.models.map((model) => (model.id === id ? { ...model, state } : model)),
    });
  }

  /** Lets a reply go on. The saved message follows, as it would on disk. */
  emit(reply: string, event: ReplyEvent): void {
    const message = this.message(reply);
    if (event.kind === "text") message.text += event.append;
    if (event.kind === "done" || event.kind === "failed") Object.assign(message, event.message);
    for (const listener of this.replyListeners.get(reply) ?? []) listener(event);
    if (event.kind === "done" || event.kind === "failed") this.setReplying(reply, null);
  }

  /** Ends a reply in the given way. */
  end(reply: string, change: Partial<Message> & Pick<Message, "state">): void {
    const message: Message = { ...this.message(reply), ...change };
    this.emit(reply, { kind: message.state === "failed" ? "failed" : "done", message });
  }

  message(id: string): Message {
    for (const { messages } of this.conversations.values()) {
      const found = messages.find((message) => message.id === id);
      if (found) return found;
    }
    throw missing("message", id);
  }

  // ---- What the UI sees.

  async appState(): Promise<AppState> {
    return this.state;
  }

  onStateChanged(listener: (state: AppState) => void) {
    this.stateListeners.add(listener);
    return () => this.stateListeners.delete(listener);
  }

  onPageRequested(listener: (page: Page) => void) {
    this.pageListeners.add(listener);
    return () => this.pageListeners.delete(listener);
  }

  onDrop(listener: (event: DropEvent) => void) {
    this.dropListeners.add(listener);
    return () => this.dropListeners.delete(listener);
  }

  async sendMessage(conversation: string | null, text: string): Promise<SentMessage> {
    const id = conversation ?? this.id("conversation");
    if (conversation === null) {
      this.addConversation({ id, title: text.split("\n")[0] ?? text, messages: [] }, Date.now());
    }
    const sent = { conversation: id, message: this.id("message"), reply: this.id("message") };
    const saved = this.find(id);
    saved.messages.push(
      newMessage(sent.message, "user", text, "complete"),
      newMessage(sent.reply, "assistant", "", "streaming"),
    );
    this.setReplying(sent.reply, sent.reply);
    this.onSend?.(sent, text);
    return sent;
  }

  async watchReply(reply: string, listener: (event: ReplyEvent) => void): Promise<void> {
    const message = { ...this.message(reply) };
    listener({ kind: "snapshot", message });
    const listeners = this.replyListeners.get(reply) ?? new Set();
    this.replyListeners.set(reply, listeners.add(listener));
  }

  async stopReply(reply: string): Promise<void> {
    this.end(reply, { state: "stopped" });
  }

  async conversation(id: string): Promise<Conversation> {
    return structuredClone(this.find(id));
  }

  async renameConversation(id: string, title: string): Promise<void> {
    this.find(id).title = title;
    this.changeSummary(id, { title });
  }

  async deleteConversation(id: string): Promise<void> {
    this.conversations.delete(id);
    this.change({ conversations: this.state.conversations.filter((one) => one.id !== id) });
  }

  async inspectPath(path: string): Promise<Verdict> {
    const verdict = this.verdicts.get(path);
    if (!verdict) {
      throw new BackendError({
        code: "not_a_model",
        message: "This folder holds no model.",
        hint: "Drop the folder that holds config.json.",
      });
    }
    return { ...verdict, alreadyAdded: this.state.models.some((model) => model.path === path) };
  }

  async addModel(path: string): Promise<string> {
    const { name, contextTokens } = await this.inspectPath(path);
    const reason = this.state.machine.reason;
    const model = { id: name, name, path, state: { kind: "unloaded" } as const, reason, contextTokens };
    this.change({ models: [...this.state.models, model] });
    return model.id;
  }

  async removeModel(id: string): Promise<void> {
    const { models, selectedModel } = this.state;
    this.change({
      models: models.filter((model) => model.id !== id),
      selectedModel: selectedModel === id ? null : selectedModel,
    });
  }

  async selectModel(id: string): Promise<void> {
    this.change({ selectedModel: id });
  }

  async loadModel(id: string): Promise<void> {
    this.setModelState(id, { kind: "ready", memoryBytes: 520 * 2 ** 20 });
  }

  async unloadModel(id: string): Promise<void> {
    this.setModelState(id, { kind: "unloaded" });
  }

  async setEndpoint(enabled: boolean, port: number): Promise<EndpointState> {
    const address = enabled ? `http://127.0.0.1:${port}` : null;
    const endpoint = { enabled, port, address, error: null };
    this.change({ endpoint });
    return endpoint;
  }

  async endpointToken(): Promise<string> {
    return this.token;
  }

  async renewEndpointToken(): Promise<string> {
    this.token = `prch-${(this.nextId++).toString(16).padStart(16, "0")}`;
    return this.token;
  }

  async openUrl(url: string): Promise<void> {
    this.opened.push(url);
  }

  async hideWindow(): Promise<void> {
    this.hidden++;
  }

  async quit(): Promise<void> {}

  private find(id: string): Conversation {
    const found = this.conversations.get(id);
    if (!found) throw missing("conversation", id);
    return found;
  }

  private setReplying(reply: string, replying: string | null): void {
    for (const [id, { messages }] of this.conversations) {
      if (messages.some((message) => message.id === reply)) this.changeSummary(id, { replying });
    }
  }

  private changeSummary(id: string, change: Partial<ConversationSummary>): void {
    this.change({
      conversations: this.state.conversations.map((one) => (one.id === id ? { ...one, ...change } : one)),
    });
  }

  private id(kind: string): string {
    return `${kind}-${this.nextId++}`;
  }
}

export function newMessage(
  id: string,
  role: Message["role"],
  text: string,
  state: Message["state"] = "complete",
): Message {
  return { id, role, text, state, error: null, model: null, stats: null, createdAt: Date.now() };
}

function missing(what: string, id: string): BackendError {
  return new BackendError({ code: "not_found", message: `There is no ${what} ${id}.`, hint: null });
}

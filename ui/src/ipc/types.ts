/** The shapes that cross between the shell and the UI. */

/** A page that the tray's menu asks for. */
export type Page = "newChat" | "settings";

export type AppError = { code: string; message: string; hint: string | null };

export type Machine = {
  chip: string;
  appleSilicon: boolean;
  memoryBytes: number;
  engine: "cpu" | "mlx";
  reason: string;
};

export type ModelState =
  | { kind: "unloaded" }
  | { kind: "loading"; progress: number }
  | { kind: "ready"; memoryBytes: number }
  | { kind: "failed"; error: AppError }
  | { kind: "missing" };

export type ModelStatus = {
  id: string;
  name: string;
  path: string;
  state: ModelState;
  reason: string | null;
  contextTokens: number | null;
};

export type EndpointState = {
  enabled: boolean;
  port: number;
  address: string | null;
  error: AppError | null;
};

export type ConversationSummary = {
  id: string;
  title: string;
  updatedAt: number;
  replying: string | null;
};

export type AppState = {
  version: string;
  machine: Machine;
  models: ModelStatus[];
  selectedModel: string | null;
  endpoint: EndpointState;
  conversations: ConversationSummary[];
};

export type ReplyStats = {
  promptTokens: number;
  completionTokens: number;
  tokensPerSecond: number;
  timeToFirstTokenMs: number;
};

export type MessageState = "complete" | "streaming" | "stopped" | "interrupted" | "failed";

export type Message = {
  id: string;
  role: "user" | "assistant";
  text: string;
  state: MessageState;
  error: AppError | null;
  model: string | null;
  stats: ReplyStats | null;
  createdAt: number;
};

export type Conversation = { id: string; title: string; messages: Message[] };

export type SentMessage = { conversation: string; message: string; reply: string };

export type ReplyEvent =
  | { kind: "snapshot"; message: Message }
  | { kind: "queued"; ahead: number }
  | { kind: "prefill"; done: number; of: number }
  | { kind: "text"; append: string; tokensPerSecond: number | null; tokens: number }
  | { kind: "done"; message: Message }
  | { kind: "failed"; message: Message };

export type MemoryAt = { context: number; bytes: number; fits: boolean };

export type Problem = { file: string | null; message: string; hint: string | null };

export type Verdict = {
  path: string;
  name: string;
  family: string | null;
  parameters: number | null;
  form: string | null;
  bitsPerWeight: number | null;
  contextTokens: number | null;
  hasTemplate: boolean;
  tools: boolean;
  thinking: boolean;
  bytesOnDisk: number;
  memory: MemoryAt[];
  problems: Problem[];
  runnable: boolean;
  alreadyAdded: boolean;
};

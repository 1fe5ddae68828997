import type { AppState, ModelStatus, Verdict } from "./bindings";
import { emptyState, FakeBackend, newMessage } from "./fake";

/**
 * A backend that plays one scene, for looking at the UI in a browser: `?scene=chat`.
 *
 * `window.perchFake` lets a browser test do more with it.
 */
export function demoBackend(scene: string | null): FakeBackend {
  const backend = new FakeBackend(scene === "empty" ? emptyState() : furnished());
  for (const verdict of [whole, broken]) backend.verdicts.set(verdict.path, verdict);
  if (scene !== "empty") addConversations(backend);
  backend.onSend = ({ reply }) => void play(backend, reply);
  Object.assign(window, { perchFake: backend });
  return backend;
}

async function play(backend: FakeBackend, reply: string) {
  const running = () => backend.message(reply).state === "streaming";
  const total = 1204;
  for (let done = 0; done <= total && running(); done += 301) {
    backend.emit(reply, { kind: "prefill", done, of: total });
    await pause(120);
  }
  const pieces = FORMATTED.match(/\s*\S+/g) ?? [];
  for (const [place, piece] of pieces.entries()) {
    if (!running()) return;
    backend.emit(reply, { kind: "text", append: piece, tokensPerSecond: 23.4, tokens: place + 1 });
    await pause(25);
  }
  if (!running()) return;
  const stats = {
    promptTokens: total,
    completionTokens: 214,
    tokensPerSecond: 23.4,
    timeToFirstTokenMs: 480,
  };
  backend.end(reply, { state: "complete", stats, model: "Qwen3-0.6B-4bit" });
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function furnished(): AppState {
  const models: ModelStatus[] = [
    model("Qwen3-0.6B-4bit", { kind: "ready", memoryBytes: 412 * 2 ** 20 }),
    model("Mistral-7B-Instruct-v0.3-4bit", { kind: "loading", progress: 0.42 }),
    model("Llama-3.2-1B-Instruct", { kind: "unloaded" }),
    model("Qwen2.5-72B-Instruct", {
      kind: "failed",
      error: {
        code: "out_of_memory",
        message: "Needs 144 GB, 11 GB are free.",
        hint: "Choose a smaller model or a form with fewer bits.",
      },
    }),
    model("tiny-experiment", { kind: "missing" }),
  ];
  return { ...emptyState(), models, selectedModel: "Qwen3-0.6B-4bit" };
}

function model(name: string, state: ModelStatus["state"]): ModelStatus {
  return { id: name, name, path: `/Users/robin/Models/${name}`, state, reason: null, contextTokens: 40960 };
}

function addConversations(backend: FakeBackend) {
  const now = Date.now();
  const day = 86_400_000;
  const talks: [string, string, number][] = [
    ["old", "Names for a small boat", 40 * day],
    ["week", "Why bread needs salt", 4 * day],
    ["yesterday", "מה מזג האוויר היום?", day],
    ["script", "A very long title that goes on and on about nothing in particular, to see where it ends", 0],
  ];
  for (const [id, title, ago] of talks) {
    const messages = [newMessage(`${id}-1`, "user", title), newMessage(`${id}-2`, "assistant", "Gladly.")];
    backend.addConversation({ id, title, messages }, now - ago - 60_000);
  }
  const stats = { promptTokens: 31, completionTokens: 214, tokensPerSecond: 23.4, timeToFirstTokenMs: 480 };
  backend.addConversation(
    {
      id: "formats",
      title: "How a kingfisher dives",
      messages: [
        newMessage("f1", "user", "How does a kingfisher dive without a splash? Show me some code, too."),
        { ...newMessage("f2", "assistant", FORMATTED), stats, model: "Qwen3-0.6B-4bit" },
        newMessage("f3", "user", "And in other scripts?"),
        { ...newMessage("f4", "assistant", SCRIPTS), stats },
      ],
    },
    now - 1000,
  );
  const failed = {
    code: "context_overflow",
    message: "This conversation has 41,310 tokens; the model takes 40,960.",
    hint: "Begin a new chat, or choose a model with a longer context.",
  };
  backend.addConversation(
    {
      id: "endings",
      title: "Ways to end",
      messages: [
        newMessage("e1", "user", "Tell me a very long story."),
        newMessage("e2", "assistant", "Once upon a time there was a bird that", "stopped"),
        newMessage("e3", "user", "Go on."),
        newMessage("e4", "assistant", "It sat on a branch over the river and", "interrupted"),
        newMessage("e5", "user", "Pneumonoultramicroscopicsilicovolcanoconiosis".repeat(3)),
        { ...newMessage("e6", "assistant", "", "failed"), error: failed },
      ],
    },
    now - 2000,
  );
  backend.addConversation(
    {
      id: "replying",
      title: "Still being written",
      messages: [
        newMessage("r1", "user", "Count to a thousand."),
        newMessage("r2", "assistant", "One, two, three, four", "streaming"),
      ],
    },
    now - 3000,
  );
}

const whole: Verdict = {
  path: "/Users/robin/Models/Qwen3-4B-4bit",
  name: "Qwen3-4B-4bit",
  family: "qwen3",
  parameters: 4_022_468_096,
  form: "4-bit affine, groups of 64",
  bitsPerWeight: 4.5,
  contextTokens: 40960,
  hasTemplate: true,
  tools: true,
  thinking: true,
  bytesOnDisk: 2_263_022_417,
  memory: [
    { context: 4096, bytes: 3.0e9, fits: true },
    { context: 32768, bytes: 7.2e9, fits: true },
    { context: 40960, bytes: 17.9e9, fits: false },
  ],
  problems: [],
  runnable: true,
  alreadyAdded: false,
};

const broken: Verdict = {
  ...whole,
  path: "/Volumes/Blue disk 🐦/Llama-3.2-3B",
  name: "Llama-3.2-3B",
  family: "llama",
  parameters: null,
  form: null,
  bitsPerWeight: null,
  tools: false,
  thinking: false,
  memory: [],
  problems: [
    {
      file: "model-00002-of-00002.safetensors",
      message: "The index names this shard, but it is not in the folder.",
      hint: "Download it again, or wait until the download is finished.",
    },
    { file: "tokenizer.json", message: "The tokenizer is missing.", hint: null },
  ],
  runnable: false,
};

const FORMATTED = `<think>
The person asks about kingfishers and wants code as well. I should keep it short.
</think>

## A quiet entry

A kingfisher's **long, tapering beak** parts the water *gradually*, so that little is pushed ahead. See [how trains borrowed the shape](https://example.org/shinkansen) or use \`drag = ½ρv²CA\`.

1. It waits on a branch
2. It folds its wings
3. It enters beak first

\`\`\`python
def depth(speed: float, drag: float = 0.12) -> float:
    """How deep the dive goes, in metres."""
    while speed > 0.1:  # slows down under water
        speed -= drag * speed ** 2
    return round(speed, 2)

print(f"{depth(7.5)} metres, said the kingfisher to nobody in particular on the branch")
\`\`\`

| Bird | Speed (km/h) | Splash |
|---|---:|---|
| Kingfisher | 40 | hardly any |
| Gannet | 97 | considerable |

> Speed is fine; stopping is the art.
`;

const SCRIPTS = `مرحبا، هذا نص من اليمين إلى اليسار مع كلمة English في الوسط.

翡翠は水しぶきをほとんど上げずに飛び込みます。🐦‍⬛👩🏽‍🔬

<b>This stays text</b> and ![a picture](https://example.org/x.png) is not fetched, nor is [this](javascript:alert(1)) a link.

\`\`\`brainf
++++++++[>++++[>++>+++>+++>+<<<<-]>+>+>->>+[<]<-]>>.
\`\`\`
`;

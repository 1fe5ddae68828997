// Writes a model that recites a text: a real Llama folder whose attention and feed-forward weights are zero, so that
// each token alone decides the next. Replies are known word by word, and as slow as `layers` makes them.
import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

const width = 512;
const inner = 4096;
const layers = 12;
const special = ["<unk>", "<end>", "<|system|>", "<|user|>", "<|assistant|>"];
const [unknown, end, , , assistant] = special.keys();

/** Makes `folder` a model that answers everything with `text`, or with `text` over and over. */
export function writeRecital(folder, text, { endless = false } = {}) {
  const pieces = piecesOf(text);
  const vocabulary = [...special, ...pieces];
  const first = special.length;
  const last = vocabulary.length - 1;
  /** What follows a token: the reply begins after the assistant's mark. */
  const next = (token) => {
    if (token === assistant) return first;
    if (token === last) return endless ? first : end;
    return token >= first ? token + 1 : end;
  };
  mkdirSync(folder, { recursive: true });
  const json = (name, value) => writeFileSync(join(folder, name), `${JSON.stringify(value, null, 1)}\n`);
  json("config.json", {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    hidden_size: width,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: 8,
    num_key_value_heads: 8,
    head_dim: width / 8,
    rms_norm_eps: 1e-6,
    rope_theta: 10000,
    max_position_embeddings: 8192,
    vocab_size: vocabulary.length,
    tie_word_embeddings: false,
    hidden_act: "silu",
    torch_dtype: "bfloat16",
    eos_token_id: end,
  });
  json("tokenizer.json", {
    version: "1.0",
    added_tokens: special.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    // Every word of a prompt is a token of its own, an unknown one.
    pre_tokenizer: { type: "WhitespaceSplit" },
    post_processor: null,
    decoder: { type: "Fuse" },
    model: {
      type: "WordLevel",
      vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
      unk_token: special[unknown],
    },
  });
  json("tokenizer_config.json", {
    eos_token: special[end],
    unk_token: special[unknown],
    chat_template:
      "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{% endfor %}" +
      "{% if add_generation_prompt %}<|assistant|>{% endif %}",
  });
  writeWeights(join(folder, "model.safetensors"), vocabulary.length, next);
}

/** Words with the space before them, joined to the next where they stand in the text a second time. */
function piecesOf(text) {
  const pieces = [];
  let piece = "";
  for (const word of text.match(/\s*\S+/g)) {
    piece += word;
    if (pieces.includes(piece)) continue;
    pieces.push(piece);
    piece = "";
  }
  if (piece !== "") pieces.push(piece);
  if (special.length + pieces.length > width) throw new Error("the text is too long for the model's width");
  return pieces;
}

function writeWeights(path, vocabulary, next) {
  const shapes = {
    "model.embed_tokens": [vocabulary, width],
    lm_head: [vocabulary, width],
    "model.norm": [width],
  };
  for (let layer = 0; layer < layers; layer++) {
    const name = `model.layers.${layer}`;
    for (const part of ["q_proj", "k_proj", "v_proj", "o_proj"])
      shapes[`${name}.self_attn.${part}`] = [width, width];
    for (const part of ["gate_proj", "up_proj"]) shapes[`${name}.mlp.${part}`] = [inner, width];
    shapes[`${name}.mlp.down_proj`] = [width, inner];
    for (const part of ["input_layernorm", "post_attention_layernorm"]) shapes[`${name}.${part}`] = [width];
  }
  const header = {};
  let size = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const bytes = 2 * shape.reduce((product, side) => product * side, 1);
    header[`${name}.weight`] = { dtype: "BF16", shape, data_offsets: [size, size + bytes] };
    size += bytes;
  }
  let head = JSON.stringify(header);
  head += " ".repeat((8 - (head.length % 8)) % 8);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(head.length));
  const file = openSync(path, "w");
  writeSync(file, Buffer.concat([length, Buffer.from(head)]));
  // What is not written is zero, and takes no room on the disk.
  ftruncateSync(file, 8 + head.length + size);
  const one = Buffer.from([0x80, 0x3f]);
  const set = (name, index) =>
    writeSync(file, one, 0, 2, 8 + head.length + header[`${name}.weight`].data_offsets[0] + 2 * index);
  for (let token = 0; token < vocabulary; token++) {
    set("model.embed_tokens", token * width + token);
    set("lm_head", next(token) * width + token);
  }
  for (const [name, shape] of Object.entries(shapes)) {
    if (shape.length === 1) for (let index = 0; index < width; index++) set(name, index);
  }
  closeSync(file);
}

const OPEN = "<think>";
const CLOSE = "</think>";

/** A reply split into what the model thought and what it said. */
export type Reply = {
  /** What stands inside `<think>…</think>`; null when the model did not think. */
  thinking: string | null;
  /** Whether the thought is finished. */
  closed: boolean;
  answer: string;
};

/**
 * Splits a reply, whole or still growing.
 *
 * Some chat templates open the thought themselves, so that the reply holds only the closing tag:
 * everything before it is then the thought.
 */
export function splitThinking(text: string): Reply {
  const start = text.trimStart();
  if (start.startsWith(OPEN)) {
    const body = start.slice(OPEN.length);
    const end = body.indexOf(CLOSE);
    if (end < 0) return { thinking: withoutPartial(body, CLOSE).trim(), closed: false, answer: "" };
    return thought(body.slice(0, end), body.slice(end + CLOSE.length));
  }
  const end = text.indexOf(CLOSE);
  if (end >= 0 && !text.slice(0, end).includes(OPEN)) {
    return thought(text.slice(0, end), text.slice(end + CLOSE.length));
  }
  // A tag that has only begun to arrive must not flash by as text.
  const answer = start.length > 0 && OPEN.startsWith(start) ? "" : text;
  return { thinking: null, closed: true, answer };
}

function thought(inside: string, after: string): Reply {
  return { thinking: inside.trim() || null, closed: true, answer: after.trimStart() };
}

/** `text` without a beginning of `tag` at its end. */
function withoutPartial(text: string, tag: string): string {
  for (let length = tag.length - 1; length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return text.slice(0, -length);
  }
  return text;
}

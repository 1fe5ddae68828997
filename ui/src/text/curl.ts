/** A line for a shell that asks the endpoint for a reply; it works as pasted. */
export function curlLine(address: string, token: string, model: string): string {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  return [
    `curl ${address}/v1/chat/completions`,
    `-H ${quoted(`Authorization: Bearer ${token}`)}`,
    "-H 'Content-Type: application/json'",
    `-d ${quoted(body)}`,
  ].join(" ");
}

/** `text` as one word of a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

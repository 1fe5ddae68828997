import { type ComponentProps, isValidElement, type MouseEvent, memo, type ReactNode } from "react";
import { Streamdown, useIsCodeFenceIncomplete } from "streamdown";
import { useBackend } from "../ipc/backend";
import { safeLink } from "../text/links";
import { CodeBlock } from "./CodeBlock";
import "./markdown.css";

/**
 * A model's text as formatted text, whole or still growing.
 *
 * What a model writes is not trusted: HTML shows as the text that it is, no image is ever fetched (an
 * address can carry a conversation away), and links open in the system's browser, http and https only.
 */
export const Markdown = memo(function Markdown({ text, streaming }: { text: string; streaming: boolean }) {
  return (
    <Streamdown
      className="markdown"
      mode={streaming ? "streaming" : "static"}
      parseIncompleteMarkdown={streaming}
      dir="auto"
      controls={false}
      rehypePlugins={noPlugins}
      urlTransform={onlySafeLinks}
      components={components}
    >
      {text}
    </Streamdown>
  );
});

// Constants, because a finished block is drawn again only when its properties change.
const noPlugins: [] = [];
const onlySafeLinks = (url: string, key: string) => (key === "href" ? safeLink(url) : null);

/** What every element is given. */
type Element = { children?: ReactNode; node?: unknown };

const components = {
  a: Link,
  img: Picture,
  pre: Fence,
  table: Table,
  // Plain tags: how they look is markdown.css's alone.
  inlineCode: InlineCode,
  blockquote: "blockquote",
  h1: "h1",
  h2: "h2",
  h3: "h3",
  h4: "h4",
  h5: "h5",
  h6: "h6",
  hr: "hr",
  li: "li",
  ol: "ol",
  p: "p",
  strong: "strong",
  sub: "sub",
  sup: "sup",
  tbody: "tbody",
  td: "td",
  th: "th",
  thead: "thead",
  tr: "tr",
  ul: "ul",
} satisfies ComponentProps<typeof Streamdown>["components"];

function Link({ href, children }: Element & { href?: string | undefined }) {
  const backend = useBackend();
  const address = safeLink(href);
  if (address === null) return <span>{children}</span>;
  const open = (event: MouseEvent) => {
    event.preventDefault();
    // The system says itself when it has no browser to open.
    backend.openUrl(address).catch(() => {});
  };
  return (
    <a href={address} title={address} rel="noreferrer" onClick={open} onAuxClick={open}>
      {children}
    </a>
  );
}

/** Stands where an image would: its description, never the image. */
function Picture({ alt }: Element & { alt?: string | undefined }) {
  return <span className="markdown-picture">{alt ? `Image: ${alt}` : "Image"}</span>;
}

function InlineCode({ children }: Element) {
  return <code>{children}</code>;
}

function Table({ children }: Element) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table must be scrollable by keyboard.
    <div className="markdown-table" tabIndex={0}>
      <table>{children}</table>
    </div>
  );
}

function Fence({ children }: Element) {
  const open = useIsCodeFenceIncomplete();
  const { className = "", children: code } = isValidElement<{ className?: string; children?: ReactNode }>(
    children,
  )
    ? children.props
    : { children };
  const language = /language-(\S+)/.exec(className)?.[1] ?? "";
  return <CodeBlock code={plainText(code).replace(/\n$/, "")} language={language} open={open} />;
}

function plainText(node: ReactNode): string {
  if (typeof node === "string") return node;
  if (Array.isArray(node)) return node.map(plainText).join("");
  return "";
}

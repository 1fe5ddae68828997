import { useEffect, useState } from "react";
import { CopyButton } from "../components/CopyButton";
import { highlight, type Token } from "./highlight";

type Highlighted = { code: string; lines: Token[][] };

/** Code in its own box, with its language, coloured once its fence is closed. */
export function CodeBlock({ code, language, open }: { code: string; language: string; open: boolean }) {
  const [highlighted, setHighlighted] = useState<Highlighted | null>(null);

  useEffect(() => {
    if (open) return;
    let current = true;
    // Without colours the code still stands there as it is, so a grammar that fails costs nothing else.
    highlight(code, language).then(
      (lines) => current && lines && setHighlighted({ code, lines }),
      () => {},
    );
    return () => {
      current = false;
    };
  }, [code, language, open]);

  return (
    <figure className="code-block" dir="ltr">
      <figcaption className="code-block-head">
        <span>{language || "text"}</span>
        <CopyButton text={code} label="Copy code" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: wide code must be scrollable by keyboard. */}
      <pre tabIndex={0}>
        <code>{highlighted?.code === code ? <Lines lines={highlighted.lines} /> : code}</code>
      </pre>
    </figure>
  );
}

/* biome-ignore-start lint/suspicious/noArrayIndexKey: the tokens of finished code never move. */
function Lines({ lines }: { lines: Token[][] }) {
  return lines.map((line, number) => (
    <span key={number}>
      {line.map(({ content, color }, place) => (
        <span key={place} style={{ color }}>
          {content}
        </span>
      ))}
      {number < lines.length - 1 && "\n"}
    </span>
  ));
}
/* biome-ignore-end lint/suspicious/noArrayIndexKey: see above. */

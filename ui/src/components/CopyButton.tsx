import { useEffect, useState } from "react";
import { copyText } from "../text/clipboard";
import { IconButton } from "./IconButton";
import { AlertIcon, CheckIcon, CopyIcon } from "./icons";

type Outcome = "copied" | "failed" | null;

/** Copies `text` and says for a moment that it did. */
export function CopyButton({ text, label, className }: { text: string; label: string; className?: string }) {
  const [outcome, setOutcome] = useState<Outcome>(null);

  useEffect(() => {
    if (outcome === null) return;
    const timer = setTimeout(() => setOutcome(null), 1500);
    return () => clearTimeout(timer);
  }, [outcome]);

  const icon = outcome === "copied" ? CheckIcon : outcome === "failed" ? AlertIcon : CopyIcon;
  const said = outcome === "copied" ? "Copied" : outcome === "failed" ? "Could not copy" : label;
  return (
    <IconButton
      icon={icon}
      label={said}
      className={`copy-button ${outcome ?? ""} ${className ?? ""}`}
      onClick={async () => setOutcome((await copyText(text)) ? "copied" : "failed")}
    />
  );
}

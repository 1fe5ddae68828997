import { useLayoutEffect, useRef } from "react";
import { IconButton } from "../components/IconButton";
import { CloseIcon } from "../components/icons";
import { Notice } from "../components/Notice";
import type { Inspected } from "./DropLayer";
import { VerdictCard } from "./VerdictCard";

type Props = { dropped: Inspected[]; onClose: () => void; onAdded: () => void };

/** The verdicts on what was dropped, over everything else. */
export function VerdictSheet({ dropped, onClose, onAdded }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);

  // Before the verdict is drawn, so that the focus can then go to its button.
  useLayoutEffect(() => {
    dialog.current?.showModal();
    dialog.current?.focus();
  }, []);

  return (
    <dialog
      ref={dialog}
      className="sheet"
      tabIndex={-1}
      aria-label="Dropped models"
      onClose={onClose}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        // The window would take Esc as a wish to go away.
        event.preventDefault();
        onClose();
      }}
    >
      <IconButton icon={CloseIcon} label="Close" shortcut="Esc" className="sheet-close" onClick={onClose} />
      <div className="sheet-cards">
        {dropped.map((one) => (
          <Outcome
            key={one.path}
            inspected={one}
            onAdded={() => {
              onAdded();
              if (dropped.length === 1) onClose();
            }}
          />
        ))}
      </div>
    </dialog>
  );
}

function Outcome({ inspected, onAdded }: { inspected: Inspected; onAdded: () => void }) {
  switch (inspected.kind) {
    case "looking":
      return (
        <div className="card card-looking" role="status">
          Looking at {lastPart(inspected.path)}
        </div>
      );
    case "failed":
      return (
        <section className="card" aria-label={lastPart(inspected.path)}>
          <h2 className="card-name">{lastPart(inspected.path)}</h2>
          <p className="card-path">{inspected.path}</p>
          <Notice error={inspected.error} />
        </section>
      );
    case "verdict":
      return <VerdictCard verdict={inspected.verdict} onAdded={onAdded} />;
  }
}

function lastPart(path: string): string {
  return path.split("/").findLast((part) => part !== "") ?? path;
}

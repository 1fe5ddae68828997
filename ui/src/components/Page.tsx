import type { ReactNode } from "react";
import { IconButton } from "./IconButton";
import { BackIcon } from "./icons";

/** A page that lies over the conversation, with the way back. */
export function Page({
  title,
  onBack,
  children,
}: {
  title: string;
  onBack: () => void;
  children: ReactNode;
}) {
  return (
    <div className="page">
      <header className="bar">
        <IconButton icon={BackIcon} label="Back" shortcut="Esc" onClick={onBack} />
        <h1 className="bar-title">{title}</h1>
        <span className="bar-balance" />
      </header>
      <main className="page-body">{children}</main>
    </div>
  );
}

/** A titled group of rows, as in System Settings. */
export function Group({ title, note, children }: { title?: string; note?: ReactNode; children: ReactNode }) {
  return (
    <section className="group" aria-label={title}>
      {title && <h2 className="group-title">{title}</h2>}
      <div className="group-rows">{children}</div>
      {note && <p className="group-note">{note}</p>}
    </section>
  );
}

export function Row({ label, children }: { label: ReactNode; children?: ReactNode }) {
  return (
    <div className="row">
      <span className="row-label">{label}</span>
      <span className="row-value">{children}</span>
    </div>
  );
}

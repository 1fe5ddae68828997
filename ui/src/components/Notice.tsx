import type { ReactNode } from "react";
import { sentence } from "../text/format";
import { AlertIcon } from "./icons";

type Props = {
  error: { message: string; hint: string | null };
  /** Something to do about it. */
  action?: ReactNode;
};

/** What went wrong and what to do about it. */
export function Notice({ error, action }: Props) {
  return (
    <div className="notice" role="alert">
      <AlertIcon size={15} aria-hidden />
      <div className="notice-text">
        <p>{sentence(error.message)}</p>
        {error.hint && <p className="notice-hint">{sentence(error.hint)}</p>}
      </div>
      {action}
    </div>
  );
}

import type { Phase } from "../state/replies";
import { count, speed } from "../text/format";

/** What a reply is doing while it is not finished. */
export function ReplyPhase({ phase }: { phase: Phase }) {
  if (phase.kind === "prefill" && phase.of > 0) {
    return (
      <div className="phase">
        <progress className="phase-bar" max={phase.of} value={phase.done} aria-label="Reading your message" />
        <span>
          Reading {count(phase.done)} of {count(phase.of)} tokens
        </span>
      </div>
    );
  }
  return (
    <div className="phase">
      <span className="phase-dots" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      <span>{words(phase)}</span>
    </div>
  );
}

function words(phase: Phase): string {
  switch (phase.kind) {
    case "queued":
      return phase.ahead === 1 ? "Waiting behind 1 request" : `Waiting behind ${count(phase.ahead)} requests`;
    case "writing":
      return phase.tokensPerSecond === null ? "Writing" : speed(phase.tokensPerSecond);
    default:
      return "Getting ready";
  }
}

import type { ModelState } from "../ipc/bindings";
import { memorySize, percent, sentence } from "../text/format";

export function stateWords(state: ModelState): string {
  switch (state.kind) {
    case "unloaded":
      return "Not loaded";
    case "loading":
      return `Loading ${percent(state.progress)}`;
    case "ready":
      return `Ready, ${memorySize(state.memoryBytes)} in memory`;
    case "failed":
      return sentence(state.error.message);
    case "missing":
      return "Folder is gone";
  }
}

/** The state at a glance; the words stand beside it. */
export function ModelDot({ state }: { state: ModelState }) {
  if (state.kind === "loading") {
    return (
      <svg className="dot-ring" viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="6" pathLength="1" className="dot-track" />
        <circle cx="8" cy="8" r="6" pathLength="1" strokeDasharray={`${state.progress} 1`} />
      </svg>
    );
  }
  return <span className={`dot dot-${state.kind}`} aria-hidden="true" />;
}

import { render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { App } from "../App";
import type { ModelState } from "../ipc/bindings";
import { emptyState, FakeBackend } from "../ipc/fake";

/** A backend with one model, selected, in the given state. */
export function withModel(state: ModelState = { kind: "ready", memoryBytes: 2 ** 29 }): FakeBackend {
  const model = { id: "m", name: "Tiny", path: "/models/Tiny", state, reason: null, contextTokens: 4096 };
  return new FakeBackend({ ...emptyState(), models: [model], selectedModel: "m" });
}

/** The whole UI over `backend`, and a person to use it. */
export function renderApp(backend: FakeBackend) {
  const user = userEvent.setup();
  render(<App backend={backend} />);
  return user;
}

import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { CheckIcon, ChevronDownIcon } from "../components/icons";
import { Notice } from "../components/Notice";
import { useTask } from "../components/useTask";
import { useBackend } from "../ipc/backend";
import type { ModelStatus } from "../ipc/bindings";
import { selectedModel, useAppState } from "../state/app-state";
import { sentence } from "../text/format";
import { ModelDot, stateWords } from "./ModelState";

/** The model at work, and the list to choose another from. */
export function ModelPicker() {
  const state = useAppState();
  const model = selectedModel(state);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const panel = useId();

  const close = () => {
    setOpen(false);
    button.current?.focus();
  };

  return (
    <div className="picker">
      <button
        ref={button}
        type="button"
        className="picker-button"
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-controls={open ? panel : undefined}
        title={open ? undefined : "Choose a model"}
        onClick={() => setOpen(!open)}
      >
        {model && <ModelDot state={model.state} />}
        <span className="picker-name">
          {model?.name ?? (state.models.length > 0 ? "Choose a model" : "No model")}
        </span>
        {model && model.state.kind !== "ready" && (
          <span className="picker-state">{stateWords(model.state)}</span>
        )}
        <ChevronDownIcon size={14} aria-hidden />
      </button>
      {open && <Panel id={panel} onClose={close} />}
    </div>
  );
}

function Panel({ id, onClose }: { id: string; onClose: () => void }) {
  const state = useAppState();
  const backend = useBackend();
  const task = useTask();
  const panel = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const first = panel.current?.querySelector<HTMLElement>("[aria-pressed=true], button");
    (first ?? panel.current)?.focus();
  }, []);

  useEffect(() => {
    const onPointer = ({ target }: PointerEvent) => {
      const picker = panel.current?.parentElement;
      if (target instanceof Node && !picker?.contains(target)) onClose();
    };
    document.addEventListener("pointerdown", onPointer);
    return () => document.removeEventListener("pointerdown", onPointer);
  }, [onClose]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.preventDefault();
      onClose();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      moveFocus(panel.current, event.key === "ArrowDown" ? 1 : -1);
    }
  };

  return (
    <div
      ref={panel}
      id={id}
      className="panel"
      role="dialog"
      aria-label="Models"
      tabIndex={-1}
      onKeyDown={onKeyDown}
    >
      {state.models.length > 0 ? (
        <ul className="panel-list">
          {state.models.map((model) => (
            <ModelRow
              key={model.id}
              model={model}
              selected={model.id === state.selectedModel}
              onSelect={() => {
                void task.run(() => backend.selectModel(model.id));
                onClose();
              }}
              onLoad={() => task.run(() => backend.loadModel(model.id))}
              onUnload={() => task.run(() => backend.unloadModel(model.id))}
            />
          ))}
        </ul>
      ) : (
        <p className="panel-none">No models yet</p>
      )}
      {task.error && <Notice error={task.error} />}
      <div className="panel-foot">
        <p>{selectedModel(state)?.reason ?? state.machine.reason}</p>
        <p>Drop a model folder anywhere on the window to add it.</p>
      </div>
    </div>
  );
}

type RowProps = {
  model: ModelStatus;
  selected: boolean;
  onSelect: () => void;
  onLoad: () => void;
  onUnload: () => void;
};

function ModelRow({ model, selected, onSelect, onLoad, onUnload }: RowProps) {
  const { state } = model;
  return (
    <li className="model-row">
      <button
        type="button"
        className="model-choice"
        aria-pressed={selected}
        disabled={state.kind === "missing"}
        title={model.path}
        onClick={onSelect}
      >
        <span className="model-check">{selected && <CheckIcon size={14} aria-hidden />}</span>
        <span className="model-text">
          <span className="model-name">{model.name}</span>
          <span className="model-state">
            <ModelDot state={state} />
            {stateWords(state)}
          </span>
          {state.kind === "failed" && state.error.hint && (
            <span className="model-hint">{sentence(state.error.hint)}</span>
          )}
        </span>
      </button>
      {(state.kind === "unloaded" || state.kind === "failed") && (
        <button type="button" className="text-button" aria-label={`Load ${model.name}`} onClick={onLoad}>
          Load
        </button>
      )}
      {state.kind === "ready" && (
        <button type="button" className="text-button" aria-label={`Unload ${model.name}`} onClick={onUnload}>
          Unload
        </button>
      )}
    </li>
  );
}

function moveFocus(panel: HTMLElement | null, step: number) {
  const choices = [...(panel?.querySelectorAll<HTMLElement>(".model-choice:enabled") ?? [])];
  const at = choices.findIndex((choice) => choice.matches(":focus"));
  choices[(at + step + choices.length) % choices.length]?.focus();
}

import { useState } from "react";
import { ModelDot, stateWords } from "../chat/ModelState";
import { IconButton } from "../components/IconButton";
import { DeleteIcon } from "../components/icons";
import { Notice } from "../components/Notice";
import { Group } from "../components/Page";
import { useTask } from "../components/useTask";
import { useBackend } from "../ipc/backend";
import type { ModelStatus } from "../ipc/bindings";
import { useAppState } from "../state/app-state";

export function ModelsSection() {
  const { models } = useAppState();
  return (
    <Group
      title="Models"
      note="Drop a model folder anywhere on the window to add it. It is used where it lies."
    >
      {models.length === 0 && <p className="models-none">No models yet</p>}
      {models.map((model) => (
        <ModelEntry key={model.id} model={model} />
      ))}
    </Group>
  );
}

function ModelEntry({ model }: { model: ModelStatus }) {
  const backend = useBackend();
  const [asking, setAsking] = useState(false);
  const task = useTask();
  return (
    <section className="model-entry" aria-label={model.name}>
      <div className="model-entry-head">
        <span className="model-text">
          <span className="model-name">{model.name}</span>
          <span className="model-state">
            <ModelDot state={model.state} />
            {stateWords(model.state)}
          </span>
          <span className="model-path selectable" title={model.path}>
            {model.path}
          </span>
        </span>
        <IconButton icon={DeleteIcon} label={`Remove ${model.name}`} onClick={() => setAsking(true)} />
      </div>
      {asking && (
        <div className="question">
          <span>Remove it from Perch? Its files stay where they are.</span>
          <button
            type="button"
            className="text-button danger"
            disabled={task.running}
            onClick={() => task.run(() => backend.removeModel(model.id))}
          >
            Remove
          </button>
          <button type="button" className="text-button" onClick={() => setAsking(false)}>
            Keep
          </button>
        </div>
      )}
      {task.error && <Notice error={task.error} />}
    </section>
  );
}

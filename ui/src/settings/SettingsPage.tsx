import { Notice } from "../components/Notice";
import { Group, Page, Row } from "../components/Page";
import { useTask } from "../components/useTask";
import { useBackend } from "../ipc/backend";
import { useAppState } from "../state/app-state";
import { memorySize } from "../text/format";
import { EndpointSection } from "./EndpointSection";
import { ModelsSection } from "./ModelsSection";
import "./settings.css";

export function SettingsPage({ onBack }: { onBack: () => void }) {
  const { machine, version } = useAppState();
  const backend = useBackend();
  const task = useTask();
  return (
    <Page title="Settings" onBack={onBack}>
      <EndpointSection />
      <ModelsSection />
      <Group title="This computer" note={machine.reason}>
        <Row label="Chip">{machine.chip}</Row>
        <Row label="Memory">{memorySize(machine.memoryBytes)}</Row>
        <Row label="Engine">{machine.engine === "mlx" ? "MLX" : "CPU"}</Row>
      </Group>
      <Group>
        <Row label={`Perch ${version}`}>
          <button type="button" className="text-button" onClick={() => task.run(() => backend.quit())}>
            Quit Perch
          </button>
        </Row>
        {task.error && <Notice error={task.error} />}
      </Group>
    </Page>
  );
}

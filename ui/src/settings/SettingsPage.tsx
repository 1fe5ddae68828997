import { Group, Page, Row } from "../components/Page";
import { useAppState } from "../state/app-state";
import { memorySize } from "../text/format";
import { EndpointSection } from "./EndpointSection";
import { ModelsSection } from "./ModelsSection";
import "./settings.css";

export function SettingsPage({ onBack }: { onBack: () => void }) {
  const { machine, version } = useAppState();
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
        <Row label="Perch">Version {version}</Row>
      </Group>
    </Page>
  );
}

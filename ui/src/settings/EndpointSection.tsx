import { CopyButton } from "../components/CopyButton";
import { Notice } from "../components/Notice";
import { Group, Row } from "../components/Page";
import { Switch } from "../components/Switch";
import { useTask } from "../components/useTask";
import { useBackend } from "../ipc/backend";
import { selectedModel, useAppState } from "../state/app-state";
import { curlLine } from "../text/curl";
import { PortField } from "./PortField";
import { TokenRow } from "./TokenRow";
import { useToken } from "./useToken";

/** The endpoint through which other apps use the same models. */
export function EndpointSection() {
  const backend = useBackend();
  const state = useAppState();
  const { enabled, port, address, error } = state.endpoint;
  const task = useTask();
  const token = useToken();
  const set = (on: boolean, at: number) => task.run(() => backend.setEndpoint(on, at));
  const shownError = task.error ?? error;
  const model = selectedModel(state) ?? state.models[0];

  return (
    <Group
      title="Endpoint"
      note="Apps on this computer that speak OpenAI’s API can use the models here. Nothing outside it can connect."
    >
      <Row label="Serve other apps">
        <Switch
          label="Serve other apps"
          checked={enabled}
          disabled={task.running}
          onChange={(on) => set(on, port)}
        />
      </Row>
      {shownError && <Notice error={shownError} />}
      {address !== null && (
        <Row label="Address">
          <code className="selectable">{address}/v1</code>
          <CopyButton text={`${address}/v1`} label="Copy address" />
        </Row>
      )}
      <Row label="Port">
        <PortField port={port} disabled={task.running} onChange={(wanted) => set(enabled, wanted)} />
      </Row>
      <TokenRow token={token} />
      {address !== null && token.value !== null && model && (
        <CurlRow address={address} token={token.value} shown={token.shown} model={model.id} />
      )}
    </Group>
  );
}

type CurlProps = { address: string; token: string; shown: boolean; model: string };

function CurlRow({ address, token, shown, model }: CurlProps) {
  return (
    <div className="curl">
      <div className="curl-head">
        <span>Try it in a terminal</span>
        <CopyButton text={curlLine(address, token, model)} label="Copy curl line" />
      </div>
      <code className="selectable">{curlLine(address, shown ? token : "••••••••", model)}</code>
    </div>
  );
}

import { useState } from "react";
import { CopyButton } from "../components/CopyButton";
import { IconButton } from "../components/IconButton";
import { HideIcon, RenewIcon, RevealIcon } from "../components/icons";
import { Notice } from "../components/Notice";
import { Row } from "../components/Page";
import type { Token } from "./useToken";

export function TokenRow({ token }: { token: Token }) {
  const [asking, setAsking] = useState(false);
  const { value, shown, setShown, renew, task } = token;
  return (
    <>
      <Row label="Token">
        {value !== null && (
          <>
            <code className="token selectable">{shown ? value : "••••••••••••"}</code>
            <IconButton
              icon={shown ? HideIcon : RevealIcon}
              label={shown ? "Hide token" : "Show token"}
              onClick={() => setShown(!shown)}
            />
            <CopyButton text={value} label="Copy token" />
            <IconButton icon={RenewIcon} label="Renew token" onClick={() => setAsking(true)} />
          </>
        )}
      </Row>
      {asking && (
        <div className="question">
          <span>Apps that use the old token will be refused.</span>
          <button
            type="button"
            className="text-button danger"
            onClick={() => {
              setAsking(false);
              renew();
            }}
          >
            Renew
          </button>
          <button type="button" className="text-button" onClick={() => setAsking(false)}>
            Keep
          </button>
        </div>
      )}
      {task.error && <Notice error={task.error} />}
    </>
  );
}

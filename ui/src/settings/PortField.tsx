import { useEffect, useId, useState } from "react";

/** Below this the system asks for an administrator. */
const LOWEST = 1024;
const HIGHEST = 65535;

type Props = { port: number; disabled: boolean; onChange: (port: number) => void };

/** The endpoint's port, taken over on Return or when the field is left. */
export function PortField({ port, disabled, onChange }: Props) {
  const [text, setText] = useState(String(port));
  const problem = useId();
  const wanted = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
  const valid = wanted >= LOWEST && wanted <= HIGHEST;

  useEffect(() => setText(String(port)), [port]);

  const commit = () => {
    if (valid && wanted !== port) onChange(wanted);
  };
  return (
    <form
      className="port"
      onSubmit={(event) => {
        event.preventDefault();
        commit();
      }}
    >
      {!valid && (
        <span id={problem} className="port-problem" role="alert">
          {LOWEST} to {HIGHEST}
        </span>
      )}
      <input
        aria-label="Port"
        inputMode="numeric"
        maxLength={5}
        value={text}
        disabled={disabled}
        aria-invalid={!valid}
        aria-describedby={valid ? undefined : problem}
        onChange={(event) => setText(event.target.value)}
        onBlur={commit}
      />
    </form>
  );
}

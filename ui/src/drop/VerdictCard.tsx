import { useEffect, useRef, useState } from "react";
import { AlertIcon, CheckIcon, MinusIcon } from "../components/icons";
import { Notice } from "../components/Notice";
import { useTask } from "../components/useTask";
import { useBackend } from "../ipc/backend";
import type { MemoryAt, Problem, Verdict } from "../ipc/bindings";
import { bits, contextSize, diskSize, memorySize, parameterCount, sentence } from "../text/format";

/** What a folder is, whether it is whole and whether it fits, before a byte of its weights is loaded. */
export function VerdictCard({ verdict, onAdded }: { verdict: Verdict; onAdded: () => void }) {
  const backend = useBackend();
  const task = useTask();
  const [added, setAdded] = useState(verdict.alreadyAdded);

  const add = () =>
    task.run(async () => {
      const id = await backend.addModel(verdict.path);
      setAdded(true);
      await backend.selectModel(id);
      onAdded();
    });

  return (
    <section className="card" aria-label={verdict.name}>
      <h2 className="card-name">{verdict.name}</h2>
      <p className="card-path" title={verdict.path}>
        {verdict.path}
      </p>
      <dl className="facts">
        <Fact name="Family" value={verdict.family} />
        <Fact name="Parameters" value={verdict.parameters ? parameterCount(verdict.parameters) : null} />
        <Fact name="Form" value={verdict.form} />
        <Fact
          name="Bits per weight"
          value={verdict.bitsPerWeight === null ? null : bits(verdict.bitsPerWeight)}
        />
        <Fact
          name="Context"
          value={verdict.contextTokens === null ? null : `${contextSize(verdict.contextTokens)} tokens`}
        />
        <Fact name="On disk" value={diskSize(verdict.bytesOnDisk)} />
      </dl>
      <ul className="abilities">
        <Ability name="Chat template" has={verdict.hasTemplate} />
        <Ability name="Tools" has={verdict.tools} />
        <Ability name="Thinking" has={verdict.thinking} />
      </ul>
      {verdict.memory.length > 0 && <Memory sizes={verdict.memory} />}
      {verdict.problems.length > 0 && <Problems problems={verdict.problems} />}
      {task.error && <Notice error={task.error} />}
      <Action verdict={verdict} added={added} busy={task.running} onAdd={add} />
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string | null }) {
  if (value === null) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Ability({ name, has }: { name: string; has: boolean }) {
  const Icon = has ? CheckIcon : MinusIcon;
  return (
    <li className={has ? "ability ability-yes" : "ability"}>
      <Icon size={14} aria-hidden />
      {name}
      {!has && <span className="visually-hidden">: no</span>}
    </li>
  );
}

function Memory({ sizes }: { sizes: MemoryAt[] }) {
  const most = Math.max(...sizes.map(({ bytes }) => bytes));
  return (
    <table className="memory">
      <caption>Memory by length of the conversation</caption>
      <tbody>
        {sizes.map(({ context, bytes, fits }) => (
          <tr key={context} className={fits ? "fits" : "too-much"}>
            <th scope="row">{contextSize(context)}</th>
            <td className="memory-bar" aria-hidden="true">
              <span style={{ width: `${Math.max(3, (bytes / most) * 100)}%` }} />
            </td>
            <td>{memorySize(bytes)}</td>
            <td className="memory-fits">{fits ? "Fits" : "Does not fit"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Problems({ problems }: { problems: Problem[] }) {
  return (
    <ul className="problems" aria-label="Problems">
      {problems.map(({ file, message, hint }) => (
        <li key={`${file} ${message}`}>
          <AlertIcon size={14} aria-hidden />
          <div>
            {file && <code>{file}</code>}
            <p>{sentence(message)}</p>
            {hint && <p className="notice-hint">{sentence(hint)}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}

type ActionProps = { verdict: Verdict; added: boolean; busy: boolean; onAdd: () => void };

function Action({ verdict, added, busy, onAdd }: ActionProps) {
  const button = useRef<HTMLButtonElement>(null);

  // The sheet opens for this one decision.
  useEffect(() => button.current?.focus(), []);

  if (added) {
    return (
      <button type="button" className="main-button" disabled>
        Already added
      </button>
    );
  }
  if (!verdict.runnable) {
    return (
      <p className="card-refused">
        Perch cannot run this{verdict.problems.length > 0 ? " until the above is mended" : " kind of model"}.
      </p>
    );
  }
  return (
    <button ref={button} type="button" className="main-button" disabled={busy} onClick={onAdd}>
      Add to Perch
    </button>
  );
}

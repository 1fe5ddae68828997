import { useEffect, useState } from "react";
import { DropIcon } from "../components/icons";
import { BackendError, useBackend } from "../ipc/backend";
import type { Verdict } from "../ipc/bindings";
import { VerdictSheet } from "./VerdictSheet";
import "./drop.css";

/** What came of looking at one dropped path. */
export type Inspected =
  | { path: string; kind: "looking" }
  | { path: string; kind: "verdict"; verdict: Verdict }
  | { path: string; kind: "failed"; error: BackendError };

/** The whole window as a place to drop models on. */
export function DropLayer({ onAdded }: { onAdded: () => void }) {
  const backend = useBackend();
  const [over, setOver] = useState(false);
  const [dropped, setDropped] = useState<Inspected[]>([]);

  useEffect(() => {
    const inspect = async (path: string) => {
      const put = (result: Inspected) =>
        setDropped((all) => all.map((one) => (one.path === path ? result : one)));
      try {
        put({ path, kind: "verdict", verdict: await backend.inspectPath(path) });
      } catch (thrown) {
        put({ path, kind: "failed", error: BackendError.from(thrown) });
      }
    };
    return backend.onDrop((event) => {
      setOver(event.kind === "over");
      if (event.kind !== "drop" || event.paths.length === 0) return;
      const paths = [...new Set(event.paths)];
      setDropped(paths.map((path) => ({ path, kind: "looking" })));
      for (const path of paths) void inspect(path);
    });
  }, [backend]);

  return (
    <>
      {dropped.length > 0 && (
        <VerdictSheet dropped={dropped} onClose={() => setDropped([])} onAdded={onAdded} />
      )}
      {over && (
        <section className="drop-target" aria-label="Drop a model">
          <DropIcon size={40} strokeWidth={1.5} aria-hidden />
          <p>Drop to see what this is</p>
        </section>
      )}
    </>
  );
}

import { useCallback, useState } from "react";
import { BackendError } from "../ipc/backend";

export type Task = {
  running: boolean;
  error: BackendError | null;
  /** Runs `work`, keeping what it rejects with as `error`. */
  run(work: () => Promise<unknown>): Promise<void>;
};

/** Something the shell is asked to do, and how that went. */
export function useTask(): Task {
  const [running, setRunning] = useState(false);
  const [error, setError] = useState<BackendError | null>(null);
  const run = useCallback(async (work: () => Promise<unknown>) => {
    setRunning(true);
    setError(null);
    try {
      await work();
    } catch (thrown) {
      setError(BackendError.from(thrown));
    } finally {
      setRunning(false);
    }
  }, []);
  return { running, error, run };
}

import { useEffect, useState } from "react";
import { type Task, useTask } from "../components/useTask";
import { useBackend } from "../ipc/backend";

export type Token = {
  /** Null until the keychain has answered. */
  value: string | null;
  shown: boolean;
  setShown: (shown: boolean) => void;
  renew: () => void;
  task: Task;
};

/** The endpoint's token, read when it is first needed and hidden until asked for. */
export function useToken(): Token {
  const backend = useBackend();
  const [value, setValue] = useState<string | null>(null);
  const [shown, setShown] = useState(false);
  const task = useTask();
  const { run } = task;

  useEffect(() => {
    void run(async () => setValue(await backend.endpointToken()));
  }, [backend, run]);

  const renew = () => void run(async () => setValue(await backend.renewEndpointToken()));
  return { value, shown, setShown, renew, task };
}

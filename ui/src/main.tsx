import { isTauri } from "@tauri-apps/api/core";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import type { Backend } from "./ipc/backend";
import "./styles/tokens.css";
import "./styles/base.css";

async function chooseBackend(): Promise<Backend> {
  // Only a build in this mode contains the demonstration; the app's does not.
  if (import.meta.env.MODE === "fake" && !isTauri()) {
    return (await import("./ipc/demo")).demoBackend(new URLSearchParams(location.search).get("scene"));
  }
  return (await import("./ipc/tauri")).tauriBackend();
}

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
const backend = await chooseBackend();
createRoot(root).render(
  <StrictMode>
    <App backend={backend} />
  </StrictMode>,
);

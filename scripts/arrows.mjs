// Which crate may call which: everything else is an error. ARCHITECTURE.md says why.
import { output, Stop } from "./setup.mjs";

const allowed = {
  "perch-model": [],
  "perch-nn": ["perch-model"],
  "perch-cpu": ["perch-nn", "perch-model"],
  "perch-engine": ["perch-cpu", "perch-nn", "perch-model"],
  "perch-server": ["perch-engine"],
  "perch-library": ["perch-model"],
  "perch-chats": [],
  "perch-cli": ["perch-server", "perch-engine", "perch-library", "perch-model"],
  "perch-app": ["perch-server", "perch-engine", "perch-library", "perch-chats", "perch-model"],
};

export function arrows() {
  const metadata = JSON.parse(output("cargo", ["metadata", "--locked", "--no-deps", "--format-version=1"]));
  const wrong = [];
  for (const crate of metadata.packages) {
    if (!(crate.name in allowed)) wrong.push(`${crate.name} is not in scripts/arrows.mjs`);
    for (const dependency of crate.dependencies.filter(({ name }) => name.startsWith("perch-"))) {
      if (!allowed[crate.name]?.includes(dependency.name)) wrong.push(`${crate.name} may not call ${dependency.name}`);
    }
  }
  if (wrong.length > 0) throw new Stop(wrong.join("\n"));
  console.log(`${metadata.packages.length} crates call only what they may`);
}

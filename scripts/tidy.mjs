// What no linter checks.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { output, root, Stop } from "./setup.mjs";

/** Files with more lines than this want splitting. */
const longest = 800;
const unfinished = /\b(todo!|unimplemented!)\(|\bFIXME\b|#\[ignore/;
const unsafeAllowed = /^crates\/perch-(cpu|mlx)\/|^crates\/perch-model\/src\/mapped\.rs$/;

export function tidy() {
  const files = output("git", ["ls-files", "--cached", "--others", "--exclude-standard"]).split("\n");
  const wrong = [];
  for (const file of files.filter((file) => /\.(rs|ts|tsx|mjs|toml)$/.test(file))) {
    let text;
    try {
      text = readFileSync(join(root, file), "utf8");
    } catch {
      continue; // Deleted, but not committed yet.
    }
    const lines = text.split("\n");
    if (/\.(rs|tsx?)$/.test(file) && lines.length > longest && !file.endsWith("bindings.ts")) wrong.push(`${file} has ${lines.length} lines`);
    if (file.endsWith(".rs") && unfinished.test(text)) wrong.push(`${file} has something unfinished`);
    if (file.endsWith(".rs") && /\bunsafe (\{|fn|impl)/.test(text) && !unsafeAllowed.test(file)) wrong.push(`${file} has unsafe code`);
    if (/(^|\/)Cargo\.toml$/.test(file) && file !== "Cargo.toml" && !/\[lints\]\nworkspace = true/.test(text)) wrong.push(`${file} does not take the workspace's lints`);
  }
  if (wrong.length > 0) throw new Stop(wrong.join("\n"));
  console.log(`${files.length} files are tidy`);
}

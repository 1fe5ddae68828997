// Every crate and npm package that Perch is made of: from the public registries only, under a licence that lets Perch be MIT or Apache-2.0.
// `cargo deny` checks the same and more, but there is no ready-made one to install and building it costs more than all other checks together.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { output, root, say } from "../run.mjs";

const allowed = new Set([
  "0BSD",
  "Apache-2.0",
  "Apache-2.0 WITH LLVM-exception",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "CC0-1.0",
  "ISC",
  "MIT",
  "MIT-0",
  "Unicode-3.0",
  "Unlicense",
  "Zlib",
  // Per file: it does not reach into what uses it.
  "MPL-2.0",
]);
/** Data or texts under licences that ask for a mention only, and tools that are no part of the app. */
const exceptions = { "caniuse-lite": "CC-BY-4.0" };

/** Whether an SPDX expression leaves a choice in which every part is allowed. */
function permits(expression) {
  const words = expression.replace(/\//g, " OR ").match(/\(|\)|[^\s()]+/g) ?? [];
  const either = () => {
    let good = both();
    while (words[0] === "OR") {
      words.shift();
      const other = both();
      good ||= other;
    }
    return good;
  };
  const both = () => {
    let good = one();
    while (words[0] === "AND") {
      words.shift();
      const other = one();
      good &&= other;
    }
    return good;
  };
  const one = () => {
    if (words[0] === "(") {
      words.shift();
      const good = either();
      words.shift();
      return good;
    }
    let name = words.shift();
    if (words[0] === "WITH") name += ` ${words.shift()} ${words.shift()}`;
    return allowed.has(name);
  };
  return either() && words.length === 0;
}

const problems = [];
const look = (name, licence, from, registry) => {
  if (from && !from.startsWith(registry)) problems.push(`${name} comes from ${from}, not from ${registry}`);
  if (!licence) problems.push(`${name} names no licence`);
  else if (!permits(licence) && exceptions[name] !== licence) problems.push(`${name} is under ${licence}`);
};
const { packages } = JSON.parse(output("cargo", ["metadata", "--format-version", "1", "--locked"]));
for (const { name, license, source } of packages) {
  look(name, license, source, "registry+https://github.com/rust-lang/crates.io-index");
}
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
const modules = Object.entries(lock.packages).filter(([path]) => path !== "");
for (const [path, { license, resolved }] of modules) {
  look(path.split("node_modules/").pop(), license, resolved, "https://registry.npmjs.org/");
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
say(`${packages.length} crates, ${modules.length} npm packages, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;

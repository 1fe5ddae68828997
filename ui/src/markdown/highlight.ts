import { createCssVariablesTheme, createHighlighterCore, type HighlighterCore } from "@shikijs/core";
import { createJavaScriptRegexEngine } from "@shikijs/engine-javascript";

/** One run of code in one colour; `color` is a CSS variable, so that light and dark follow the theme. */
export type Token = { content: string; color: string | undefined };

/** The grammars, loaded when a block first needs one. */
const grammars = {
  bash: () => import("@shikijs/langs/bash"),
  c: () => import("@shikijs/langs/c"),
  cpp: () => import("@shikijs/langs/cpp"),
  csharp: () => import("@shikijs/langs/csharp"),
  css: () => import("@shikijs/langs/css"),
  diff: () => import("@shikijs/langs/diff"),
  go: () => import("@shikijs/langs/go"),
  html: () => import("@shikijs/langs/html"),
  java: () => import("@shikijs/langs/java"),
  javascript: () => import("@shikijs/langs/javascript"),
  json: () => import("@shikijs/langs/json"),
  kotlin: () => import("@shikijs/langs/kotlin"),
  lua: () => import("@shikijs/langs/lua"),
  markdown: () => import("@shikijs/langs/markdown"),
  php: () => import("@shikijs/langs/php"),
  python: () => import("@shikijs/langs/python"),
  ruby: () => import("@shikijs/langs/ruby"),
  rust: () => import("@shikijs/langs/rust"),
  sql: () => import("@shikijs/langs/sql"),
  swift: () => import("@shikijs/langs/swift"),
  toml: () => import("@shikijs/langs/toml"),
  tsx: () => import("@shikijs/langs/tsx"),
  typescript: () => import("@shikijs/langs/typescript"),
  xml: () => import("@shikijs/langs/xml"),
  yaml: () => import("@shikijs/langs/yaml"),
};

type Grammar = keyof typeof grammars;

const aliases: Record<string, Grammar> = {
  "c++": "cpp",
  "c#": "csharp",
  cs: "csharp",
  golang: "go",
  js: "javascript",
  jsx: "tsx",
  md: "markdown",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  shell: "bash",
  svg: "xml",
  ts: "typescript",
  yml: "yaml",
  zsh: "bash",
};

const theme = createCssVariablesTheme({ variablePrefix: "--code-" });

// The JavaScript engine needs neither WebAssembly nor eval, which the content security policy forbids.
let highlighter: Promise<HighlighterCore> | null = null;
function sharedHighlighter(): Promise<HighlighterCore> {
  highlighter ??= createHighlighterCore({
    themes: [theme],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
  return highlighter;
}

/** The code as coloured lines, or null for a language that Perch has no grammar of. */
export async function highlight(code: string, language: string): Promise<Token[][] | null> {
  const name = language.toLowerCase();
  const lang = aliases[name] ?? (Object.hasOwn(grammars, name) ? (name as Grammar) : null);
  if (lang === null) return null;
  const [shared, grammar] = await Promise.all([sharedHighlighter(), grammars[lang]()]);
  await shared.loadLanguage(grammar.default);
  const { tokens } = shared.codeToTokens(code, { lang, theme: theme.name ?? "css-variables" });
  return tokens.map((line) => line.map(({ content, color }) => ({ content, color })));
}

import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  clearScreen: false,
  cacheDir: "../node_modules/.vite",
  server: { port: 1420, strictPort: true, host: "127.0.0.1" },
  build: {
    // The oldest WebKit that runs Perch is macOS 14's, Safari 17.
    target: "safari17",
    outDir: "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // A grammar is loaded from disk when a code block needs it; its size costs nothing before.
    chunkSizeWarningLimit: 1000,
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/testing/setup.ts"],
    restoreMocks: true,
    testTimeout: 30_000,
  },
});

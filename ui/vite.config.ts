import { defineConfig } from "vite";

// Relative addresses: the service writes the way to its root into the index, so that any prefix works.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/rota/web/pages",
    emptyOutDir: true,
    target: ["chrome125", "firefox128", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});

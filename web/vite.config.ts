import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `just web` proxies the interface of a running server; its address is in this variable.
const server = process.env.RALPH_DEV_SERVER ?? "http://127.0.0.1:8000";

export default defineConfig({
  // The server may be behind a path prefix, so all addresses are relative to the page's base.
  base: "./",
  plugins: [react()],
  build: {
    outDir: process.env.RALPH_WEB_OUT ?? "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: "es2022",
  },
  // The tests with a browser are run by `node --test`; see scripts/web.
  test: { include: ["src/**/*.test.ts"] },
  server: { proxy: { "/api": { target: server, ws: true }, "/login": server } },
});

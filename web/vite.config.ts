import react from "@vitejs/plugin-react";
import type { Plugin, ProxyOptions } from "vite";
import { defineConfig } from "vitest/config";

// `just web` passes the interface of a running server on; its address is in this variable.
const server = process.env.RALPH_DEV_SERVER ?? "http://127.0.0.1:8000";

// The server accepts only its own host and origin, which it has for browsers without this proxy.
const proxy: ProxyOptions = { target: server, changeOrigin: true, headers: { origin: server } };

/** The server adds the base address to the document; during development this plugin does. */
const baseAddress: Plugin = {
  name: "base-address",
  apply: "serve",
  transformIndexHtml: () => [{ tag: "base", attrs: { href: "/" }, injectTo: "head-prepend" }],
};

export default defineConfig({
  // The server may be behind a path prefix, so all addresses are relative to the page's base.
  base: "./",
  plugins: [react(), baseAddress],
  build: {
    outDir: process.env.RALPH_WEB_OUT ?? "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: "es2022",
  },
  // The tests with a browser are run by `node --test`; see scripts/web.
  test: { include: ["src/**/*.test.ts"] },
  server: { port: 5173, strictPort: true, proxy: { "/api": { ...proxy, ws: true }, "/login": proxy } },
});

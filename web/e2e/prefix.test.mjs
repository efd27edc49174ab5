// The dashboard below a path, behind a reverse proxy.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { badge, browserTest, openPage, start, startRun, tab } from "./fixture.mjs";
import { freePort, startProxy } from "./proxy.mjs";

let proxy;
let server;

before(async () => {
  proxy = await startProxy("/some/prefix");
  const port = await freePort();
  proxy.target = `http://127.0.0.1:${port}`;
  server = await start({ port, options: ["--behind-proxy", "--public-url", `${proxy.url}/`] });
});

after(async () => {
  await server?.close();
  proxy?.close();
});

browserTest("a run is started and watched below a path", async (openPage) => {
  const { page, problems } = await openPage(server);
  assert.ok(server.url.startsWith(proxy.url), server.url);
  await startRun(page, server, server.repository("slugs"));
  await badge(page, "succeeded").waitFor();
  await tab(page, "Timeline");
  await page.reload();
  await page.getByRole("button", { name: /^Iteration 1/ }).click();
  await tab(page, "Diff");
  await page.getByRole("button", { name: /slug\.sh/ }).waitFor();
  await tab(page, "Logs");
  await page.getByText("iteration 1 starts").waitFor();
  await page.getByRole("link", { name: "Machine" }).click();
  await page.getByRole("heading", { name: "Machine" }).waitFor();
  await page.getByRole("link", { name: "Runs" }).first().click();
  await page.getByRole("link", { name: "Turn titles into page names" }).waitFor();
  assert.deepEqual(proxy.foreign, []);
  assert.deepEqual(problems, []);
});

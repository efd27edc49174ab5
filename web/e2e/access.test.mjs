// Share links and signing out, against a real server.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { browserTest, start } from "./fixture.mjs";

let server;
let state;

before(async () => {
  server = await start();
});

after(async () => {
  await server?.close();
});

browserTest("a share link shows everything, changes nothing, and ends when it is revoked", async (open) => {
  const { page, context } = await open(server);
  state = await context.storageState();
  await page.goto(`${server.url}/machine/access`);
  await page.getByText("everything", { exact: true }).waitFor();
  await page.getByLabel("Valid for").selectOption("10");
  await page.getByRole("button", { name: "Create a link" }).click();
  const link = await page.getByLabel("The new link").inputValue();
  const guest = await open({ ...server, login: link });
  await guest.page.goto(`${server.url}/machine/access`);
  await guest.page.getByText("look at everything, change nothing").waitFor();
  const status = await guest.page.evaluate(() => fetch("/api/v1/shares", { method: "POST", headers: { "X-Ralph-Csrf": "1", "content-type": "application/json" }, body: "{}" }).then((reply) => reply.status));
  assert.equal(status, 403);
  await page.reload();
  await page.getByText(/used \d+ s ago/).waitFor();
  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Revoke" }).waitFor({ state: "detached" });
  const reply = await guest.page.goto(`${server.url}/`);
  assert.equal(reply.status(), 401);
});

browserTest("a browser signs out", async (open) => {
  const { page } = await open(server, { state });
  await page.goto(`${server.url}/machine/access`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("ralph serve --login").waitFor();
});

// What pages of other origins can do with the session of the user: nothing.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { asks, openPage, start } from "./fixture.mjs";

let server;
let foreign;
let state;
let run;

before(async () => {
  server = await start();
  foreign = createServer((_, reply) => reply.setHeader("content-type", "text/html").end("<!doctype html><title>foreign</title><body></body>"));
  await new Promise((done) => foreign.listen(0, "127.0.0.1", done));
  const { path, model } = server.repository("asking", { replies: [asks("Which separator do you want?")] });
  const { page, context } = await openPage(server);
  state = await context.storageState();
  run = await page.evaluate(async ({ path, model }) => {
    const headers = { "content-type": "application/json", "x-ralph-csrf": "1" };
    const body = JSON.stringify({ directory: path, model, sandbox: "local" });
    const { id } = await (await fetch("/api/v1/runs", { method: "POST", headers, body })).json();
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const { status } = await (await fetch(`/api/v1/runs/${id}`)).json();
      if (status === "paused") return id;
      await new Promise((done) => setTimeout(done, 200));
    }
    throw new Error("the run asks no question");
  }, { path, model });
  await context.close();
});

after(async () => {
  foreign?.close();
  await server?.close();
});

/** The records of the run, and the commands that wait for it. */
function ledger() {
  const directory = join(server.root, "state/runs", run);
  const commands = readdirSync(directory).includes("commands") ? readdirSync(join(directory, "commands")) : [];
  return { journal: readFileSync(join(directory, "journal.jsonl"), "utf8"), commands };
}

// `localhost` is another site than 127.0.0.1; another port of 127.0.0.1 is the same site, so the browser sends the cookie.
for (const host of ["localhost", "127.0.0.1"]) {
  test(`a page of ${host} changes nothing, and reads and shows nothing`, async () => {
    const context = await server.browser.newContext({ storageState: state });
    const page = await context.newPage();
    const origin = `http://${host}:${foreign.address().port}/`;
    const records = ledger();
    const paths = ["stop", "resume", "answer", "messages"].map((command) => `/api/v1/runs/${run}/${command}`);

    // A form in the whole window, which no frame rule affects.
    for (const path of paths) {
      for (const enctype of ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]) {
        await page.goto(origin);
        const answered = page.waitForResponse((response) => response.url() === server.url + path);
        await page.evaluate(submitForm, { action: server.url + path, enctype });
        assert.equal((await answered).status(), 403, `${path} ${enctype}`);
        await page.waitForURL(server.url + path);
      }
    }

    await page.goto(origin);
    const results = await page.evaluate(attempts, { url: server.url, paths });
    assert.deepEqual(results, { requests: paths.map(() => "TypeError"), read: "TypeError", stream: "closed" });
    // Refused pages are errors of the browser, which no page can look into.
    await page.evaluate((address) => {
      const frame = document.createElement("iframe");
      frame.src = address;
      document.body.append(frame);
    }, `${server.url}/runs/${run}/overview`);
    await page.waitForFunction(() => {
      const frame = document.querySelector("iframe");
      return frame.contentDocument === null;
    });
    const shown = await Promise.all(page.frames().slice(1).map((frame) => frame.evaluate(() => document.body.innerText)));
    assert.ok(shown.every((text) => !text.includes("Overview")), shown.join());

    assert.deepEqual(ledger(), records);
    // The session still works: no attempt failed for the lack of one.
    const own = await context.request.get(`${server.url}/api/v1/session`);
    assert.equal((await own.json()).scope, "full");
    await context.close();
  });
}

function submitForm({ action, enctype }) {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action, enctype });
  const field = document.createElement("input");
  Object.assign(field, { type: "hidden", name: '{"text": "stop", "a', value: '": 1}' });
  form.append(field);
  document.body.append(form);
  form.submit();
}

/** Tries requests with the cookie, and the stream of all events. Runs in the foreign page. */
async function attempts({ url, paths }) {
  const attempt = (address, options) => fetch(address, { credentials: "include", mode: "no-cors", ...options }).then((reply) => reply.type, (error) => error.name);
  const requests = [];
  for (const path of paths) requests.push(await attempt(url + path, { method: "POST", headers: { "content-type": "text/plain" }, body: "{}" }));
  const stream = await new Promise((done) => {
    const socket = new WebSocket(`${url.replace("http", "ws")}/api/v1/events`);
    socket.onopen = () => done("open");
    socket.onclose = () => done("closed");
  });
  return { requests, read: await attempt(`${url}/api/v1/runs`), stream };
}

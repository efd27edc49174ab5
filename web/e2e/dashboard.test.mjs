// The pages as a whole: a first run, the keyboard, and people with disabilities.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { badge, browserTest, openPage, start, startRun, tab } from "./fixture.mjs";

let server;
let state;
let run;

before(async () => {
  server = await start();
});

after(async () => {
  await server?.close();
});

browserTest("a run is planned, started, watched, inspected and merged", async (openPage) => {
  const repository = server.repository("slugs");
  const { page, context, problems } = await openPage(server);
  state = await context.storageState();
  await page.getByText("No run yet").waitFor();
  run = await startRun(page, server, repository);
  await badge(page, "succeeded").waitFor();
  await page.getByText("verified in a clean room").first().waitFor();
  await tab(page, "Timeline");
  await page.getByRole("button", { name: /^Iteration 1/ }).click();
  await page.getByRole("button", { name: "prompt", exact: true }).click();
  await page.getByText("prompt.md").waitFor();
  await tab(page, "Logs");
  await page.getByText("iteration 1 starts").waitFor();
  await tab(page, "Diff");
  await page.getByRole("button", { name: /slug\.sh/ }).waitFor();
  await page.getByRole("button", { name: "Unified" }).click();
  await page.getByText("usage: slug.sh TITLE").first().waitFor();
  await tab(page, "Evidence");
  await page.getByText("green", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Check the files of the run" }).click();
  await page.getByText("no promise was broken").waitFor();
  await tab(page, "Overview");
  await page.getByRole("button", { name: "Merge" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Merge" }).click();
  await page.getByText("is merged into main").waitFor();
  assert.match(repository.git("log", "--format=%s", "main"), /punctuation/i);
  await page.goto(server.url);
  await page.getByRole("link", { name: "Turn titles into page names" }).waitFor();
  assert.deepEqual(problems, []);
});

browserTest("the keyboard finds runs and pages", async (openPage) => {
  const { page, problems } = await openPage(server, { state });
  await page.goto(server.url);
  await page.getByRole("link", { name: "Turn titles into page names" }).first().waitFor();
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Search runs, pages and commands").fill("machine");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Machine" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Search runs and commands").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  assert.deepEqual(problems, []);
});

const parts = ["overview", "timeline", "logs", "task", "guidance", "diff", "evidence", "diagnostics", "sandbox"];
const machine = ["providers", "agents", "models", "issues", "configuration", "sandboxes", "disk", "access", "page"];

browserTest("no page has a serious fault for people with disabilities, in any theme or width", async (openPage) => {
  const paths = ["/", "/new", "/cost", ...parts.map((part) => `/runs/${run}/${part}`), ...machine.map((part) => `/machine/${part}`)];
  for (const colorScheme of ["light", "dark"]) {
    for (const viewport of [
      { width: 1440, height: 900 },
      { width: 390, height: 844 },
    ]) {
      const { page, problems } = await openPage(server, { state, colorScheme, viewport });
      for (const path of paths) {
        await page.goto(server.url + path);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await page.waitForLoadState("networkidle");
        const { violations } = await new AxeBuilder({ page }).analyze();
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        const found = serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
        assert.deepEqual(found, [], `${path}, ${colorScheme}, ${viewport.width}`);
        const { scroll, width } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, width: window.innerWidth }));
        assert.ok(scroll <= width, `${path} is ${scroll} px wide in a window of ${width} px`);
      }
      assert.deepEqual(problems, []);
    }
  }
});

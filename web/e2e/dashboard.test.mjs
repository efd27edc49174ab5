// What a user does with the dashboard, against a real server with real runs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { openPage, start } from "./fixture.mjs";

const QUESTION = "Which separator <script>alert(1)</script> do you want?";
const asking = [
  { reply: { summary: "Ask", actions: [{ type: "pause", reason: QUESTION }], claims: { checkboxes_checked: [], milestones_completed: [] } } },
  { reply: { summary: "Work", actions: [{ type: "run", command: "sleep 120", timeout_s: 300 }], claims: { checkboxes_checked: [], milestones_completed: [] } } },
]
  .map((line) => JSON.stringify({ ...line, usage: { input_tokens: 10, output_tokens: 10 } }))
  .join("\n");

let server;
let state;

before(async () => {
  server = await start();
});

after(async () => {
  await server?.close();
});

async function startRun(page, repository) {
  await page.goto(`${server.url}/new`);
  await page.getByLabel("Path or GitHub address").fill(repository.path);
  await page.getByRole("button", { name: "A file of the repository" }).click();
  await page.getByLabel("Or another model").fill(repository.model);
  await page.getByLabel("Sandbox", { exact: true }).selectOption("local");
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByRole("navigation", { name: "Parts of the run" }).waitFor();
  return new URL(page.url()).pathname.split("/")[2];
}

const tab = (page, name) => page.getByRole("navigation", { name: "Parts of the run" }).getByRole("link", { name }).click();
const badge = (page, text) => page.locator(".page-header .badge", { hasText: text });

test("a run is planned, started, watched, inspected and merged", async () => {
  const repository = server.repository("slugs");
  const { page, context, problems } = await openPage(server);
  state = await context.storageState();
  await page.goto(`${server.url}/new`);
  await page.getByLabel("Path or GitHub address").fill(repository.path);
  await page.getByText("Default branch").waitFor();
  const id = await startRun(page, repository);
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
  assert.ok(id.length > 0);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a run that asks is answered, guided, paused and stopped", async () => {
  const repository = server.repository("asking", asking);
  const { page, context, problems } = await openPage(server, { state });
  await startRun(page, repository);
  // The question is text, whatever it contains.
  await page.getByText(QUESTION).first().waitFor();
  await page.getByLabel("Your answer").fill("A dash");
  await page.getByRole("button", { name: "Answer and continue" }).click();
  await badge(page, "running").waitFor();
  await tab(page, "Guidance");
  await page.getByLabel("Name").fill("Dashes only");
  await page.getByLabel("Situation").fill("When a title has spaces");
  await page.getByLabel("Instruction").fill("Use single dashes");
  await page.getByRole("button", { name: "Add the guardrail" }).click();
  await tab(page, "Task");
  await page.locator(".cm-content").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await badge(page, "paused").waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("button", { name: "Stop the run" }).click();
  await badge(page, "stopped").waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test("the keyboard finds runs and pages", async () => {
  const { page, context, problems } = await openPage(server, { state });
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
  await context.close();
});

test("no page has a serious fault for people with disabilities, in any theme or width", async () => {
  const paths = ["/", "/new", "/cost"];
  const run = await firstRun();
  for (const part of ["overview", "timeline", "logs", "task", "guidance", "diff", "evidence", "diagnostics", "sandbox"]) paths.push(`/runs/${run}/${part}`);
  for (const part of ["providers", "agents", "models", "issues", "configuration", "sandboxes", "disk", "page"]) paths.push(`/machine/${part}`);
  for (const colorScheme of ["light", "dark"]) {
    for (const viewport of [
      { width: 1440, height: 900 },
      { width: 390, height: 844 },
    ]) {
      const { page, context, problems } = await openPage(server, { state, colorScheme, viewport });
      for (const path of paths) {
        await page.goto(server.url + path);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await page.waitForLoadState("networkidle").catch(() => {});
        const { violations } = await new AxeBuilder({ page }).analyze();
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        const found = serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
        assert.deepEqual(found, [], `${path}, ${colorScheme}, ${viewport.width}`);
        const { scroll, width } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, width: window.innerWidth }));
        assert.ok(scroll <= width, `${path} is ${scroll} px wide in a window of ${width} px`);
      }
      assert.deepEqual(problems, []);
      await context.close();
    }
  }
});

async function firstRun() {
  const { page, context } = await openPage(server, { state });
  await page.goto(server.url);
  const link = await page.getByRole("link", { name: "Turn titles into page names" }).first().getAttribute("href");
  await context.close();
  return link.split("/").at(-1);
}

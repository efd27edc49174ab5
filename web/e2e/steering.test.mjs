// What a user does with a run while it works, waits or has ended.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { asks, badge, browserTest, command, more, openPage, reply, start, startRun, tab } from "./fixture.mjs";

let server;
let state;

before(async () => {
  server = await start({ options: ["--workers", "8"] });
  const { context } = await openPage(server);
  state = await context.storageState();
  await context.close();
});

after(async () => {
  await server?.close();
});

/** A page of a new run. The model gives the replies that `script` returns for the repository. */
async function run(openPage, name, script, { task, mode, fields } = {}) {
  const repository = server.repository(name, { task });
  repository.script(script(repository));
  const opened = await openPage(server, { state });
  const id = await startRun(opened.page, server, repository, { mode, fields });
  return { ...opened, id, repository };
}

browserTest("a question is answered, and the answer is in the next prompt", async (openPage) => {
  const { page, problems } = await run(openPage, "asking", (it) => [asks("Which separator?"), reply("Work", [command(it.waits)])]);
  await page.getByText("Which separator?").first().waitFor();
  await page.getByLabel("Your answer").fill("A single dash");
  await page.getByRole("button", { name: "Answer and continue" }).click();
  await badge(page, "running").waitFor();
  await tab(page, "Timeline");
  await page.getByRole("button", { name: /^Iteration 2/ }).click();
  await page.getByRole("button", { name: "prompt", exact: true }).click();
  await page.getByText("A single dash").first().waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("button", { name: "Stop the run" }).click();
  await badge(page, "stopped").waitFor();
  assert.deepEqual(problems, []);
});

browserTest("a run is watched, paused, resumed, rotated and stopped", async (openPage) => {
  const { page, repository, problems } = await run(openPage, "watched", (it) => [
    reply("Look", [command(`echo the first line; ${it.waits}; echo the last line`)]),
    reply("Wait", [command("sleep 6"), command("echo never")]),
    reply("Wait", [command("sleep 300")]),
  ]);
  await tab(page, "Timeline");
  await page.getByRole("log").getByText("the first line").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("the run pauses at the next action").waitFor();
  repository.proceed();
  await badge(page, "paused").waitFor();
  await page.getByRole("button", { name: "Resume" }).first().click();
  await badge(page, "running").waitFor();
  await page.getByRole("button", { name: /^Iteration 2/ }).waitFor();
  await page.getByRole("button", { name: "Rotate" }).click();
  await page.getByRole("button", { name: /^Iteration 3/ }).waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("button", { name: "Stop the run" }).click();
  await badge(page, "stopped").waitFor();
  assert.deepEqual(problems, []);
});

browserTest("the task is edited with the linter, and a guardrail is added", async (openPage) => {
  const { page, repository, problems } = await run(openPage, "edited", (it) => [reply("Wait", [command(it.waits)]), reply("Wait", [command("sleep 300")])]);
  await tab(page, "Task");
  const editor = page.locator(".cm-content");
  await editor.click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.type("no_such_key: 1\n");
  await page.locator(".cm-lint-marker-error").first().waitFor();
  await page.getByText("The linter found 1 error.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Put in force" }).getAttribute("aria-disabled"), "true");
  await page.getByRole("button", { name: "Revert" }).click();
  await page.locator(".cm-lint-marker-error").first().waitFor({ state: "detached" });
  await editor.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("\n- [ ] M2.3 Long titles are cut\n");
  await page.getByRole("button", { name: "Put in force" }).click();
  await page.getByText("A changed task waits for the next iteration.").waitFor();
  await tab(page, "Guidance");
  await page.getByLabel("Name").fill("Dashes only");
  await page.getByLabel("Situation").fill("When a title has spaces");
  await page.getByLabel("Instruction").fill("Use single dashes");
  await page.getByRole("button", { name: "Add the guardrail" }).click();
  repository.proceed();
  await page.locator("strong", { hasText: "Dashes only" }).waitFor();
  await tab(page, "Timeline");
  await page.getByRole("button", { name: /^Iteration 2/ }).click();
  await page.getByRole("button", { name: "prompt", exact: true }).click();
  const prompt = page.locator("pre.output", { hasText: "Long titles are cut" });
  await prompt.waitFor();
  assert.match(await prompt.textContent(), /Use single dashes/);
  await tab(page, "Overview");
  await page.getByText("Long titles are cut").waitFor();
  assert.deepEqual(problems, []);
});

browserTest("the doctor is asked, and its report is applied", async (openPage) => {
  const report = {
    summary: "Nobody says where the name is written.",
    patterns: ["the same question twice"],
    root_causes: ["it is not said where"],
    guardrails: [{ name: "Ask once", trigger: "before a question", instruction: "read slug.sh first", evidence: "iteration 1" }],
    spec_edits: [],
    model_profile: null,
  };
  const { page, problems } = await run(openPage, "diagnosed", () => [
    { when: "You are the doctor of a Ralph loop", reply: report, usage: { input_tokens: 500, output_tokens: 50 } },
    asks("Where?"),
  ]);
  await badge(page, "paused").waitFor();
  await tab(page, "Diagnostics");
  await page.getByRole("button", { name: "Ask the doctor" }).last().click();
  await page.getByText("Nobody says where the name is written.").first().waitFor();
  await page.getByRole("button", { name: "Apply the report" }).last().click();
  await tab(page, "Guidance");
  await page.locator("strong", { hasText: "Ask once" }).waitFor();
  assert.deepEqual(problems, []);
});

browserTest("the model is changed, and the next iteration uses it", async (openPage) => {
  server.profiles({ first: [asks("Who am I?")], second: [asks("I am the second model.")] });
  const { page, problems } = await run(openPage, "models", () => [asks("unused")], {
    task: (text) => text.replace('task_id: "demo"', 'task_id: "models"\nmodel_profile_default: first'),
    fields: { "Or another model": "" },
  });
  await page.getByText("Who am I?").first().waitFor();
  await more(page, "Change the model");
  await page.getByRole("dialog").getByRole("button", { name: /second/ }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByLabel("Your answer").fill("The first one");
  await page.getByRole("button", { name: "Answer and continue" }).click();
  await page.getByText("I am the second model.").first().waitFor();
  assert.deepEqual(problems, []);
});

browserTest("a used-up budget is raised, and the run continues", async (openPage) => {
  const { page, problems } = await run(openPage, "limited", (it) => [reply("One", [command("true")]), reply("Two", [command(it.waits)])], {
    fields: { Iterations: "1" },
  });
  await badge(page, "failed").waitFor();
  await page.getByText("A budget is used up").waitFor();
  await page.getByRole("button", { name: "Raise budgets and continue" }).click();
  await page.getByRole("dialog").getByLabel("Iterations").fill("5");
  await page.getByRole("button", { name: "Continue the run" }).click();
  await badge(page, "running").waitFor();
  await page.getByText("2 of 5").first().waitFor();
  assert.deepEqual(problems, []);
});

browserTest("what a mode forbids says why, and a debug command shows its output", async (openPage) => {
  const { page, repository, problems } = await run(openPage, "debugged", (it) => [reply("Wait", [command(it.waits)]), asks("What now?")]);
  await badge(page, "running").waitFor();
  await tab(page, "Guidance");
  await page.getByLabel("Note", { exact: true }).fill("Look at slug.sh");
  const note = page.getByRole("button", { name: "Add the note" });
  assert.equal(await note.getAttribute("aria-disabled"), "true");
  await page.getByText("its mode is `autonomous`").first().waitFor();
  await tab(page, "Diagnostics");
  const debug = page.getByRole("button", { name: "test", exact: true });
  assert.equal(await debug.getAttribute("aria-disabled"), "true");
  await more(page, "Change the mode");
  await page.getByRole("dialog").getByRole("button", { name: /^debug/ }).click();
  repository.proceed();
  await badge(page, "mode debug").waitFor();
  await debug.click();
  await page.getByText(/passed, \d+ failed/).first().waitFor();
  await tab(page, "Guidance");
  await page.getByLabel("Note", { exact: true }).fill("Look at slug.sh");
  await note.click();
  await page.getByRole("definition").getByText("Look at slug.sh").waitFor();
  assert.deepEqual(problems, []);
});

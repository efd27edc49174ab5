// A host that a container could not reach, allowed by the user. Needs a Docker Engine; see scripts/engine.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { asks, badge, browserTest, command, openPage, reply, start, startRun, tab } from "./fixture.mjs";

const skip = process.env.RALPH_TEST_NO_DOCKER === "1";
let server;

before(async () => {
  if (!skip) server = await start();
});

after(async () => {
  await server?.close();
});

browserTest(
  "a blocked host is shown and allowed",
  async (openPage) => {
    const repository = server.repository("hosts", {
      task: (text) => text.replace('sandbox_provider: "local"', 'sandbox_provider: "docker"\nsandbox_image: "ralph-base:bookworm"\nverification:\n  baseline: false'),
    });
    repository.script([reply("Look a name up", [command("getent hosts packages.example || echo no such name")]), asks("Is packages.example needed?")]);
    const { page, problems } = await openPage(server);
    await startRun(page, server, repository, { sandbox: "docker" });
    await badge(page, "paused").waitFor();
    await page.getByText("Hosts were blocked").waitFor();
    await tab(page, "Sandbox");
    await page.getByText("policy deny").waitFor();
    await page.getByText("container, no network interface").waitFor();
    await page.getByRole("button", { name: "Allow for this run" }).last().click();
    await page.getByRole("heading", { name: "Allowed by you" }).waitFor();
    await page.getByText("Hosts were blocked").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByRole("button", { name: "Stop the run" }).last().click();
    await badge(page, "stopped").waitFor();
    await page.getByRole("button", { name: "More commands" }).click();
    await page.getByRole("menuitem", { name: "Remove the run" }).click();
    const remove = page.getByRole("dialog").getByRole("button", { name: "Remove" });
    const gone = page.getByText("No run yet");
    // The process may still end the sandbox of the stopped run.
    await remove.click();
    await gone.or(page.getByText("cannot remove run")).waitFor();
    while (!(await gone.isVisible())) {
      await remove.click();
      await page.waitForTimeout(500);
    }
    // The browser reports the refused removal.
    assert.deepEqual(problems.filter((problem) => !problem.includes("409")), []);
  },
  { skip },
);

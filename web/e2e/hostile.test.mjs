// Text of models, commands and repositories is shown as text, whatever it contains.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { badge, browserTest, command, openPage, reply, start, startRun, tab } from "./fixture.mjs";

const SCRIPT = "<script>window.stolen = 1</script><img src=x onerror=\"window.stolen = 1\">";
/** A right-to-left override, which turns the rest of a line around. */
const BIDI = "\u202e";
const MARK = "[U+202E]";
const FILE = `a${BIDI}txt.<b>exe`;
const LINE = 10 * 1024 * 1024;

let server;

before(async () => {
  server = await start();
});

after(async () => {
  await server?.close();
});

const hostileReplies = [
  reply(`Write ${SCRIPT} ${BIDI}`, [
    { type: "write", path: FILE, content: `${SCRIPT}\n${BIDI}reversed\n` },
    command(`printf '\\033[31mred\\033[0m \\007bell\\n${SCRIPT.replaceAll("'", "")}\\n'; head -c ${LINE} /dev/zero | tr '\\0' x; echo; echo the end`),
    { type: "commit", message: `Add ${SCRIPT}`, paths: [FILE] },
  ]),
  reply("Ask", [{ type: "pause", reason: `Which ${SCRIPT} ${BIDI}do you want?` }]),
];

browserTest("hostile text is visible as text, without a request, an error or a freeze", async (openPage) => {
  const repository = server.repository("hostile", { task: (text) => text.replace("# Task: Turn titles", `# Task: \`${SCRIPT}\` ${BIDI}Turn titles`) });
  repository.script(hostileReplies);
  const { page, problems } = await openPage(server);
  await startRun(page, server, repository);
  await badge(page, "paused").waitFor();
  await page.getByRole("heading", { level: 1, name: SCRIPT }).waitFor();
  assert.ok((await page.title()).includes(MARK), await page.title());
  await page.locator(".attention").getByText(`Which ${SCRIPT} ${MARK}do you want?`).waitFor();
  await page.getByText("[Ralph] <script>").first().waitFor();

  await tab(page, "Timeline");
  await page.getByRole("button", { name: /^Iteration 1/ }).click();
  await page.locator(".action summary", { hasText: "txt.<b>exe" }).waitFor();
  await page.locator(".action summary", { hasText: "printf" }).click();
  await page.getByRole("button", { name: "Show the output of the iteration" }).first().click();
  await page.getByText("the end").first().waitFor();
  await page.getByRole("button", { name: "prompt", exact: true }).click();
  await page.getByText("prompt.md").waitFor();

  await tab(page, "Diff");
  await page.getByRole("button", { name: /^a.*txt.<b>exe/ }).waitFor();
  await page.getByText(`${MARK}reversed`).waitFor();
  await page.getByText(SCRIPT).first().waitFor();

  await tab(page, "Logs");
  await page.getByText("iteration 1 starts").waitFor();
  await page.getByRole("button", { name: "Errors" }).click();
  await page.getByRole("log").waitFor();

  await tab(page, "Sandbox");
  await page.getByRole("button", { name: `a${MARK}txt.<b>exe` }).click();
  await page.getByText(`${MARK}reversed`).waitFor();

  await page.goto(server.url);
  await page.getByRole("link", { name: SCRIPT }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByText(SCRIPT).waitFor();
  assert.equal(await page.evaluate(() => window.stolen), undefined);
  assert.ok(!(await page.locator("body").innerText()).includes(BIDI), "a mark is still in the text");
  assert.deepEqual(problems, []);
});

// Takes the pictures of the dashboard; see scripts/screenshots.

import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";

const MINUTE = 60_000;
const images = resolve(process.argv[2]);

/** The pictures: a name, the task of the run, the part of its page, and a text that is there when the part is complete. */
const pictures = [
  { name: "home", wait: "Read German and American dates" },
  { name: "run", task: "units", part: "overview", wait: "Loop score" },
  { name: "circling", task: "dates", part: "overview", wait: "The doctor has a report" },
  { name: "diff", task: "demo", part: "diff", wait: "slug.sh" },
];

const root = mkdtempSync(join(tmpdir(), "ralph-demo-"));
const demo = startDemo();
let browser;
try {
  const { url, login } = await demo.address;
  browser = await chromium.launch({ executablePath: process.env.RALPH_CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(MINUTE);
  await page.goto(login);
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  const runs = await settledRuns(page);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const { name, task, part, wait } of pictures) {
      await page.goto(task ? `${url}/runs/${runs[task].id}/${part}` : url);
      await page.getByText(wait).first().waitFor();
      await page.getByRole("status").getByText("live", { exact: true }).waitFor();
      // Charts and highlighted code appear a moment after their texts.
      await sleep(1500);
      await page.screenshot({ path: join(images, `dashboard-${name}-${colorScheme}.png`), animations: "disabled" });
    }
  }
} finally {
  await browser?.close();
  await demo.end();
  rmSync(root, { recursive: true, force: true });
}

/** Starts the demo in the temporary directory, with a home that is empty. */
function startDemo() {
  const home = join(root, "home");
  mkdirSync(home);
  const env = { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8" };
  const child = spawn(process.env.RALPH_PROGRAM, ["demo", "--serve", "--dir", join(root, "demo")], { cwd: home, env, stdio: ["ignore", "pipe", "pipe"] });
  const errors = [];
  child.stderr.on("data", (data) => errors.push(data));
  const ended = new Promise((done) => child.once("exit", done));
  const address = new Promise((done, fail) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      const login = /^dashboard: (\S+)$/m.exec(text)?.[1];
      if (login) done({ login, url: new URL(login).origin });
    });
    void ended.then((code) => fail(new Error(`the demo ended with ${code}: ${errors.join("")}`)));
  });
  return {
    address,
    async end() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** Waits until two runs wait for the user and one has worked for a while. Returns the runs by task. */
async function settledRuns(page) {
  for (const start = Date.now(); Date.now() - start < 5 * MINUTE; await sleep(500)) {
    const { runs } = await page.evaluate(() => fetch("/api/v1/runs").then((reply) => reply.json()));
    const byTask = Object.fromEntries(runs.map((run) => [run.task_id, run]));
    const waits = ["todo", "dates"].every((task) => byTask[task]?.status === "paused");
    if (waits && byTask.units?.iteration >= 5) return byTask;
  }
  throw new Error("the runs of the demo did not reach their states");
}

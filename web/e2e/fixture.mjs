// A real server with real runs, and a real browser.

import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const program = resolve(process.env.RALPH_PROGRAM ?? "../target/debug/ralph");
const demo = resolve("../crates/ralph/demo/slug");
const executablePath = process.env.RALPH_CHROMIUM ?? "/usr/bin/chromium";
const MINUTE = 60_000;

/** Starts a server with an empty state directory and a browser. `close` ends both. */
export async function start() {
  const root = mkdtempSync(join(tmpdir(), "ralph-e2e-"));
  const home = join(root, "home");
  mkdirSync(home);
  writeFileSync(join(home, ".gitconfig"), "[user]\n\tname = Test\n\temail = test@example.org\n[init]\n\tdefaultBranch = main\n");
  const env = { PATH: process.env.PATH, HOME: home, RALPH_HOME: join(root, "state"), LANG: "C.UTF-8" };
  const server = spawn(program, ["serve", "--port", "0", "--json"], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  const errors = [];
  server.stderr.on("data", (data) => errors.push(data));
  const { url, login } = JSON.parse(await firstLine(server, errors));
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
  });
  return {
    root,
    url,
    login,
    browser,
    repository: (name, replies) => repository(join(root, name), replies, env),
    async close() {
      await browser.close();
      const ended = new Promise((done) => server.once("exit", done));
      server.kill("SIGTERM");
      await ended;
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function firstLine(server, errors) {
  return new Promise((done, fail) => {
    let text = "";
    const timer = setTimeout(() => fail(new Error(`the server printed no address: ${errors.join("")}`)), MINUTE);
    server.once("exit", (code) => fail(new Error(`the server ended with ${code}: ${errors.join("")}`)));
    server.stdout.on("data", (data) => {
      text += data;
      const end = text.indexOf("\n");
      if (end >= 0) {
        clearTimeout(timer);
        done(text.slice(0, end));
      }
    });
  });
}

/** A repository with the demo's project, its task and the replies of a scripted model. */
function repository(path, replies, env) {
  mkdirSync(path);
  for (const file of ["slug.sh", "ralph_task.md", "tests"]) cpSync(join(demo, file), join(path, file), { recursive: true });
  const script = `${path}.jsonl`;
  writeFileSync(script, replies ?? readFileSync(join(demo, "replies.jsonl")));
  const git = (...args) => execFileSync("git", ["-C", path, ...args], { env, stdio: "pipe" });
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-q", "-m", "Start");
  return { path, model: `scripted:${script}`, git: (...args) => git(...args).toString().trim() };
}

/** A signed-in page. It remembers errors of the console and requests to other origins. */
export async function openPage(server, { colorScheme = "light", viewport = { width: 1440, height: 900 }, state } = {}) {
  const context = await server.browser.newContext({ colorScheme, viewport, ...(state ? { storageState: state } : {}) });
  const page = await context.newPage();
  page.setDefaultTimeout(MINUTE);
  const problems = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(server.url) && !request.url().startsWith("data:")) problems.push(`request to ${request.url()}`);
  });
  if (!state) {
    await page.goto(server.login);
    await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  }
  return { page, context, problems };
}

// A real server with real runs, and a real browser.

import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { chromium } from "playwright-core";

const program = resolve(process.env.RALPH_PROGRAM ?? "../target/debug/ralph");
const demo = resolve("../crates/ralph/demo/slug");
const executablePath = process.env.RALPH_CHROMIUM ?? "/usr/bin/chromium";
/** A directory with a build of the dashboard, to test instead of the program's own; it saves building the program. */
const dist = process.env.RALPH_WEB_OUT;
const MINUTE = 60_000;

/** Starts a server with an empty state directory and a browser. `close` ends both. */
export async function start({ port = 0, options = [] } = {}) {
  const root = mkdtempSync(join(tmpdir(), "ralph-e2e-"));
  const home = join(root, "home");
  mkdirSync(home);
  writeFileSync(join(home, ".gitconfig"), "[user]\n\tname = Test\n\temail = test@example.org\n[init]\n\tdefaultBranch = main\n");
  const env = { PATH: process.env.PATH, HOME: home, RALPH_HOME: join(root, "state"), LANG: "C.UTF-8" };
  const server = spawn(program, ["serve", "--port", String(port), "--json", ...options], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  const errors = [];
  server.stderr.on("data", (data) => errors.push(data));
  const { url, login } = JSON.parse(await firstLine(server, errors));
  const browser = await chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      // The pages of a directory come from no server, so the browser would not let them reach this machine.
      ...(dist ? ["--disable-features=LocalNetworkAccessChecks"] : []),
      "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
  });
  return {
    root,
    url: url.replace(/\/$/, ""),
    login,
    browser,
    profiles: (profiles) => writeProfiles(join(home, ".config/ralph"), profiles),
    repository: (name, options) => repository(join(root, name), options, env),
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

/** Model profiles of the user: their names with the replies of their scripts. */
function writeProfiles(directory, profiles) {
  mkdirSync(directory, { recursive: true });
  const lines = Object.entries(profiles).map(([name, replies]) => {
    const script = join(directory, `${name}.jsonl`);
    writeFileSync(script, linesOf(replies));
    return `  ${name}:\n    litellm_model: "scripted:${script}"\n    max_output_tokens: 8192\n`;
  });
  writeFileSync(join(directory, "models.yaml"), `profiles:\n${lines.join("")}`);
}

const linesOf = (replies) => replies.map((reply) => JSON.stringify(reply)).join("\n");

/**
 * A repository with the demo's project and task, and a model that gives these replies. `task` changes the text of the
 * task, `files` are added.
 */
function repository(path, { replies, task = (text) => text, files = {} } = {}, env) {
  mkdirSync(path);
  for (const file of ["slug.sh", "ralph_task.md", "tests"]) cpSync(join(demo, file), join(path, file), { recursive: true });
  const taskFile = join(path, "ralph_task.md");
  writeFileSync(taskFile, task(readFileSync(taskFile, "utf8")));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  const script = `${path}.jsonl`;
  writeFileSync(script, replies ? linesOf(replies) : readFileSync(join(demo, "replies.jsonl")));
  const git = (...args) => execFileSync("git", ["-C", path, ...args], { env, stdio: "pipe" });
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-q", "-m", "Start");
  const flag = `.git/${basename(path)}.go`;
  return {
    path,
    model: `scripted:${script}`,
    script: (replies) => writeFileSync(script, linesOf(replies)),
    git: (...args) => git(...args).toString().trim(),
    /** A command that ends when the test calls `proceed`. */
    waits: `until [ -e '${flag}' ]; do sleep 0.1; done`,
    proceed: () => {
      // A local sandbox sees no file outside of its directory.
      const sandboxes = join(env.RALPH_HOME, "sandboxes");
      for (const sandbox of readdirSync(sandboxes)) {
        if (existsSync(join(sandboxes, sandbox, "repo/.git"))) writeFileSync(join(sandboxes, sandbox, "repo", flag), "");
      }
    },
  };
}

/** A reply of a model. */
export const reply = (summary, actions, claims = {}) => ({
  reply: { summary, actions, claims: { checkboxes_checked: [], milestones_completed: [], ...claims } },
  usage: { input_tokens: 1000, output_tokens: 100 },
});
export const command = (text) => ({ type: "run", command: text, timeout_s: 300 });
export const asks = (question) => reply("Ask", [{ type: "pause", reason: question }]);

/** A test that leaves pictures of its pages in target/e2e if it fails, and closes them. */
export function browserTest(name, body, options = {}) {
  test(name, options, async () => {
    const contexts = [];
    const open = async (server, options) => {
      const opened = await openPage(server, options);
      contexts.push(opened.context);
      return opened;
    };
    try {
      await body(open);
    } catch (error) {
      const pages = contexts.flatMap((context) => context.pages());
      for (const [number, page] of pages.entries()) {
        const path = resolve(`../target/e2e/${name.replaceAll(/[^a-z0-9]+/gi, "-")}-${number}.png`);
        await page.screenshot({ path, fullPage: true });
        console.error(`a picture of ${page.url()} is ${path}`);
      }
      throw error;
    } finally {
      for (const context of contexts) await context.close();
    }
  });
}

/** A signed-in page. It remembers errors of the console and requests to other origins. */
export async function openPage(server, { colorScheme = "light", viewport = { width: 1440, height: 900 }, state } = {}) {
  const context = await server.browser.newContext({ colorScheme, viewport, ...(state ? { storageState: state } : {}) });
  if (dist) await context.route(`${server.url}/**`, (route) => serveBuild(route, new URL(server.url).pathname.replace(/\/$/, "")));
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
    // The page of a redirect is never the directory's.
    if (dist) await page.goto(server.url);
  }
  return { page, context, problems };
}

/** Answers requests for pages and files with those of the directory; the interface stays the server's. */
async function serveBuild(route, prefix) {
  const request = route.request();
  const pathname = new URL(request.url()).pathname.slice(prefix.length);
  if (pathname.startsWith("/assets/") && existsSync(join(dist, pathname))) return route.fulfill({ path: join(dist, pathname) });
  if (request.resourceType() !== "document" || pathname.startsWith("/login") || pathname.startsWith("/api/")) return route.fallback();
  const response = await route.fetch();
  const added = (await response.text()).match(/<base[^]*?csp-nonce[^>]*>/)?.[0] ?? "";
  const body = readFileSync(join(dist, "index.html"), "utf8").replace("<head>", `<head>${added}`);
  return route.fulfill({ response, body });
}

/** Starts a run of a repository by the form. Returns its id. */
export async function startRun(page, server, repository, { sandbox = "local", mode, fields = {} } = {}) {
  await page.goto(`${server.url}/new`);
  await page.getByLabel("Path or GitHub address").fill(repository.path);
  await page.getByRole("button", { name: "A file of the repository" }).click();
  await page.getByLabel("Or another model").fill(repository.model);
  await page.getByLabel("Sandbox", { exact: true }).selectOption(sandbox);
  if (mode) await page.getByLabel("Mode").selectOption(mode);
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(value);
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByRole("navigation", { name: "Parts of the run" }).waitFor();
  return new URL(page.url()).pathname.split("/runs/")[1].split("/")[0];
}

export const tab = (page, name) => page.getByRole("navigation", { name: "Parts of the run" }).getByRole("link", { name }).click();
export const badge = (page, text) => page.locator(".page-header .badge", { hasText: text });
export const more = async (page, name) => {
  await page.getByRole("button", { name: "More commands" }).click();
  await page.getByRole("menuitem", { name, exact: true }).click();
};

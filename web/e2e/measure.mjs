// The measurements of bench/web.

import { badge, command, openPage, reply, start, startRun, tab } from "./fixture.mjs";

const ITERATIONS = process.env.QUICK ? 30 : 300;
const LINES = process.env.QUICK ? 100_000 : 1_000_000;
const SAMPLES = 9;
const MIB = 1024 * 1024;

let exceeded = false;

function report(name, value, unit, limit, isMinimum = false) {
  const isGood = isMinimum ? value >= limit : value <= limit;
  exceeded ||= !isGood;
  const shown = value >= 10 ? Math.round(value) : value.toFixed(1);
  console.log(`${name.padEnd(52)} ${`${shown} ${unit}`.padStart(10)}   ${isMinimum ? "at least" : "at most"} ${limit} ${unit}${isGood ? "" : "   EXCEEDED"}`);
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

const server = await start();
const first = await openPage(server);
const state = await first.context.storageState();
await first.context.close();

await firstLoad();
const run = await longRun();
await scrolling(run);
await latency();
await server.close();
process.exitCode = exceeded ? 1 : 0;

async function firstLoad() {
  const paints = [];
  let script = 0;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const { page, context } = await openPage(server, { state });
    const sizes = [];
    page.on("response", (response) => {
      if (response.url().endsWith(".js")) sizes.push(Number(response.headers()["content-length"] ?? 0));
    });
    await page.goto(server.url, { waitUntil: "networkidle" });
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    script = sizes.reduce((sum, size) => sum + size, 0);
    await context.close();
  }
  report(`first contentful paint (median of ${SAMPLES})`, median(paints), "ms", 300);
  report("compressed JavaScript of the first load", script / 1024, "KiB", 350);
}

/** A run with many iterations and a large log. */
async function longRun() {
  const repository = server.repository("long", {
    task: (text) =>
      text
        .replace("max_iterations: 10", `max_iterations: ${ITERATIONS + 2}`)
        .replace("max_wall_time_minutes: 5", "max_wall_time_minutes: 60")
        .replace("max_tokens_total: 100000", "max_tokens_total: 100000000")
        .replace(/test_command: .*/, "test_command: \"test -e part-1.txt\""),
  });
  const write = `seq -f 'line %.0f of a long log, as commands and agents write it' 1 ${LINES}; ${repository.waits}`;
  // Without a commit in each iteration the run would be circling.
  const step = (number) =>
    reply(`Write part ${number}`, [
      { type: "write", path: `part-${number}.txt`, content: `a${number}\nb${number}\nc${number}\nd${number}\n` },
      { type: "commit", message: `Add part ${number}`, paths: [`part-${number}.txt`] },
    ]);
  repository.script([...Array.from({ length: ITERATIONS }, (_, index) => step(index + 1)), reply("Write", [command(write)])]);
  const { page, context } = await openPage(server, { state });
  const id = await startRun(page, server, repository);
  await tab(page, "Timeline");
  await page.getByRole("button", { name: `Iteration ${ITERATIONS + 1}` }).waitFor({ timeout: 20 * 60_000 });
  await page.getByText(`line ${LINES} `).first().waitFor({ timeout: 5 * 60_000 });
  await context.close();
  return id;
}

async function scrolling(id) {
  const { page, context } = await openPage(server, { state });
  await page.goto(`${server.url}/runs/${id}/logs`);
  await page.getByRole("button", { name: "Output", exact: true }).click();
  await page.getByRole("log").getByText(`line ${LINES} `).waitFor();
  report(`frames per second, log of ${LINES.toLocaleString("en")} lines`, await framesWhileScrolling(page, ".log-box", -3_000), "fps", 50, true);
  await tab(page, "Timeline");
  await page.getByRole("button", { name: `Iteration ${ITERATIONS}` }).waitFor();
  report(`frames per second, ${ITERATIONS} iterations`, await framesWhileScrolling(page, ".timeline-list", 300), "fps", 50, true);
  await tab(page, "Overview");
  await page.locator(".chart").first().waitFor();
  await tab(page, "Logs");
  await page.getByRole("button", { name: "Output", exact: true }).click();
  await page.getByRole("log").getByText(`line ${LINES} `).waitFor();
  await framesWhileScrolling(page, ".log-box", -3_000);
  const session = await context.newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  report("JavaScript heap after all of it", usedSize / MIB, "MiB", 150);
  await context.close();
}

/** Scrolls at every frame for some seconds and counts the frames. */
function framesWhileScrolling(page, selector, step) {
  return page.locator(selector).evaluate(async (box, by) => {
    const duration = 4_000;
    const started = performance.now();
    let frames = 0;
    let direction = by;
    while (performance.now() - started < duration) {
      const before = box.scrollTop;
      box.scrollTop += direction;
      if (box.scrollTop === before) direction = -direction;
      await new Promise(requestAnimationFrame);
      frames += 1;
    }
    return (frames * 1000) / (performance.now() - started);
  }, step);
}

/** The time from the start of an iteration, by its record, to its line in the timeline. */
async function latency() {
  const repository = server.repository("events");
  const wait = (number) => ({ ...reply(`Wait ${number}`, [{ type: "run", command: "sleep 1", timeout_s: 10 }]), delay_ms: 100 });
  repository.script([...Array.from({ length: SAMPLES }, (_, index) => wait(index)), reply("Ask", [{ type: "pause", reason: "enough" }])]);
  const { page, context } = await openPage(server, { state });
  const id = await startRun(page, server, repository);
  await tab(page, "Timeline");
  await page.evaluate(() => {
    window.seen = {};
    const look = () => {
      for (const entry of document.querySelectorAll(".timeline-entry strong")) window.seen[entry.textContent] ??= Date.now();
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true });
  });
  await badge(page, "paused").waitFor();
  const delays = await page.evaluate(async (url) => {
    const { iterations } = await (await fetch(url)).json();
    return iterations.slice(1).flatMap(({ iteration, started_at }) => {
      const at = window.seen[`Iteration ${iteration}`];
      return at === undefined ? [] : [at - Date.parse(started_at)];
    });
  }, `${server.url}/api/v1/runs/${id}/iterations`);
  report(`from an event to the screen (median of ${delays.length})`, median(delays), "ms", 150);
  await context.close();
}

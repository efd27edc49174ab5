import type { FleetRun, ListedRun } from "../../api/types";

export type SectionKind = "needs you" | "working" | "queued" | "finished";
export type Section = { kind: SectionKind; title: string; runs: ListedRun[] };

const titles: Record<SectionKind, string> = {
  "needs you": "Needs you",
  working: "Working",
  queued: "Queued",
  finished: "Finished",
};

const working = new Set(["preparing", "running", "verifying", "waiting_ci", "waiting_quota", "waiting_provider", "waiting_host"]);
const waitsForUser = new Set(["paused", "interrupted", "sandbox_lost", "damaged", "needs_upgrade", "orphaned"]);

/** The days in which a failed run waits for a decision; later it is history. */
const DAYS = 7;

/** Whether a failed run still waits for a decision: more budget, another try, or to be discarded. */
function isOpen(run: ListedRun): boolean {
  const isDecided = run.pr?.state === "merged" || run.pr?.state === "closed";
  const age = run.updated_at ? Date.now() - new Date(run.updated_at).getTime() : 0;
  return !isDecided && age < DAYS * 86_400_000;
}

/** The part of the page in which a run is listed. */
export function sectionOf(run: ListedRun): SectionKind {
  if (run.queue_position !== null && run.queue_position !== undefined) return "queued";
  if (run.status === "failed" && isOpen(run)) return "needs you";
  if (run.needs_you || waitsForUser.has(run.status)) return "needs you";
  if (working.has(run.status) || run.status === "created") return "working";
  return "finished";
}

/** The parts of the page that have runs, in order. */
export function sections(runs: ListedRun[]): Section[] {
  const kinds: SectionKind[] = ["needs you", "working", "queued", "finished"];
  return kinds
    .map((kind) => ({ kind, title: titles[kind], runs: runs.filter((run) => sectionOf(run) === kind) }))
    .filter((section) => section.runs.length > 0);
}

/** Adds what the server knows about unfinished runs: their place in the queue and what they do now. */
export function withQueue(runs: ListedRun[], fleet: FleetRun[]): ListedRun[] {
  const known = new Map(fleet.map((run) => [run.id, run]));
  return runs.map((run) => {
    const live = known.get(run.id);
    return live ? { ...run, queue_position: live.queue_position, needs_you: live.needs_you, activity: live.activity } : run;
  });
}

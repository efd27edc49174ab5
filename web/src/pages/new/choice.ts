import type { components } from "../../api/schema";
import type { Answer } from "./question-box";

type NewRun = components["schemas"]["NewRun"];

/** What the user chose on the page. */
export type Choice = {
  repo: string;
  kind: "sentence" | "task" | "file";
  sentence: string;
  task: string;
  file: string;
  /** `agent:NAME`, `profile:NAME`, or empty. */
  worker: string;
  model: string;
  sandbox: string;
  mode: string;
  iterations: string;
  cost: string;
  minutes: string;
};

export const emptyChoice: Choice = {
  repo: "",
  kind: "sentence",
  sentence: "",
  task: "",
  file: "ralph_task.md",
  worker: "",
  model: "",
  sandbox: "",
  mode: "",
  iterations: "",
  cost: "",
  minutes: "",
};

const KEY = "ralph.choices";
/** The number of repositories whose choices are remembered. */
const MOST = 50;

/** The last choice for a repository, or the last one of all; never its task. */
export function loadChoice(repo?: string): Choice | undefined {
  const found = read().find(([name]) => repo === undefined || name === repo);
  return found ? { ...emptyChoice, ...found[1], sentence: "", task: "" } : undefined;
}

/**
 * The choice after another repository was named: the last one for it. The settings of a known repository do not stay
 * for an unknown one; what the user has written does.
 */
export function choiceFor(repo: string, before: Choice): Choice {
  const written = { sentence: before.sentence, task: before.task };
  const known = loadChoice(repo);
  if (known) return { ...known, ...written, repo, kind: written.sentence || written.task ? before.kind : known.kind };
  if (loadChoice(before.repo)) return { ...emptyChoice, ...written, repo, kind: before.kind, file: before.file };
  return { ...before, repo };
}

export function saveChoice(choice: Choice): void {
  const others = read().filter(([name]) => name !== choice.repo);
  localStorage.setItem(KEY, JSON.stringify([[choice.repo, choice], ...others].slice(0, MOST)));
}

function read(): [string, Choice][] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(value) ? (value as [string, Choice][]) : [];
  } catch (error) {
    console.warn("the remembered choices cannot be read", error);
    return [];
  }
}

/** The request that starts the run. */
export function requestOf(choice: Choice, answers: Answer): NewRun {
  const [workerKind, worker] = split(choice.worker);
  const { unfinished_run, ...given } = answers;
  const isPath = choice.repo.startsWith("/");
  return {
    ...(isPath ? { directory: choice.repo.trim() } : { repo: choice.repo.trim() }),
    ...(choice.kind === "sentence" ? { prompt: choice.sentence } : choice.kind === "task" ? { task: choice.task } : { file: choice.file || "ralph_task.md" }),
    ...(choice.model ? { model: choice.model } : {}),
    ...(workerKind === "agent" ? { engine: "agent", agent: worker } : {}),
    ...(workerKind === "profile" && !choice.model ? { engine: "actions", profile: worker } : {}),
    ...(choice.sandbox ? { sandbox: choice.sandbox } : {}),
    ...(choice.mode ? { mode: choice.mode as NewRun["mode"] } : {}),
    budgets: {
      max_iterations: number(choice.iterations),
      max_cost_usd: number(choice.cost),
      max_time_seconds: choice.minutes === "" ? undefined : Number(choice.minutes) * 60,
    },
    ...(unfinished_run ? { unfinished_run } : {}),
    answers: given,
  } as NewRun;
}

function split(worker: string): [string, string] {
  const at = worker.indexOf(":");
  return at < 0 ? ["", ""] : [worker.slice(0, at), worker.slice(at + 1)];
}

function number(text: string): number | undefined {
  return text.trim() === "" ? undefined : Number(text);
}

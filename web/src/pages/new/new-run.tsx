import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useId, useMemo, useState } from "react";
import { useInspection, useNewTaskText, usePlanPreview, useRepositories, useRunChoices, useStartRun } from "../../api/machine";
import { RequestFailed } from "../../api/problem";
import { lintTask } from "../../api/steering";
import { toastError } from "../../shell/toast";
import { useTitle } from "../../shell/title";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { Select, TextArea, TextField } from "../../ui/field";
import { repoName } from "../../ui/format";
import { Preflight } from "./preflight";
import { PlanView } from "./plan-view";
import { ProjectFacts } from "./project-facts";
import { QuestionBox, type Answer } from "./question-box";
import { choiceFor, emptyChoice, loadChoice, requestOf, saveChoice, type Choice } from "./choice";

const TaskEditor = lazy(() => import("../../editor/task-editor"));

const kinds = [
  { kind: "sentence", text: "One sentence" },
  { kind: "task", text: "A task with checkboxes" },
  { kind: "file", text: "A file of the repository" },
] as const;

const modes = ["autonomous", "guided", "debug"];

/** Prepares and starts a run. */
export default function NewRun() {
  useTitle("New run");
  const navigate = useNavigate();
  const repositories = useRepositories();
  const [choice, setChoice] = useState<Choice>(() => loadChoice() ?? emptyChoice);
  const [answers, setAnswers] = useState<Answer>({});
  const listId = useId();
  const typed = useSettled(choice.repo.trim());
  const inspection = useInspection(typed);
  const choices = useRunChoices(inspection.isSuccess && typed.startsWith("/") ? typed : "");
  const preview = usePlanPreview();
  const start = useStartRun();
  const template = useNewTaskText();
  const set = (part: Partial<Choice>) => {
    setChoice((before) => ({ ...before, ...part }));
    preview.reset();
  };
  const field = (name: keyof Choice) => (event: { target: { value: string } }) => set({ [name]: event.target.value });
  // A retry after a lost response must not start a second run.
  const key = useMemo(() => crypto.randomUUID(), [choice, answers]);

  // The last choice for a repository comes back with the repository.
  const pickRepo = (repo: string) => set(choiceFor(repo, choice));

  const missing =
    choice.repo.trim() === ""
      ? "name a repository first"
      : choice.kind === "sentence" && choice.sentence.trim() === ""
        ? "say in one sentence what you want"
        : choice.kind === "task" && choice.task.trim() === ""
          ? "write the task first"
          : undefined;
  const request = requestOf(choice, answers);
  const begin = () =>
    start.mutate(
      { run: request, key },
      {
        onSuccess: (run) => {
          saveChoice(choice);
          void navigate({ to: "/runs/$run", params: { run: run.id } });
        },
      },
    );
  const question = start.error instanceof RequestFailed && start.error.problem.type.endsWith("question") ? start.error.problem : undefined;
  const options = choices.data;

  return (
    <div className="page">
      <header className="page-header">
        <h1>New run</h1>
      </header>
      <div className="columns">
        <div className="stack loose">
          <Card title="Repository">
            <div className="stack">
              <TextField
                label="Path or GitHub address"
                placeholder="/home/you/project, OWNER/NAME or https://…"
                list={listId}
                value={choice.repo}
                onChange={(event) => pickRepo(event.target.value)}
                spellCheck={false}
                autoComplete="off"
              />
              <datalist id={listId}>
                {repositories.data?.repositories.map((one) => (
                  <option key={one.repository} value={one.repository} />
                ))}
              </datalist>
              {choice.repo === "" && <Recent repositories={repositories.data?.repositories ?? []} onPick={pickRepo} />}
              <ProjectFacts query={inspection} />
            </div>
          </Card>
          <Card title="Task">
            <div className="stack">
              <div className="row wrap" role="group" aria-label="Source of the task">
                {kinds.map((one) => (
                  <Button key={one.kind} kind="quiet" aria-pressed={choice.kind === one.kind} onClick={() => set({ kind: one.kind })}>
                    {one.text}
                  </Button>
                ))}
              </div>
              {choice.kind === "sentence" && (
                <TextArea
                  label="What do you want?"
                  rows={3}
                  placeholder="Add a --json flag to list"
                  hint={testHint(inspection.data?.test_commands[0]?.command, inspection.isSuccess)}
                  value={choice.sentence}
                  onChange={field("sentence")}
                />
              )}
              {choice.kind === "task" && (
                <>
                  <div className="row wrap">
                    <Button
                      icon="file"
                      busy={template.isPending}
                      onClick={() =>
                        template.mutate(
                          { sentence: choice.sentence || undefined, directory: choice.repo.startsWith("/") ? choice.repo : undefined },
                          { onSuccess: (made) => set({ task: made.text }), onError: toastError },
                        )
                      }
                    >
                      Start from the template
                    </Button>
                  </div>
                  <Suspense fallback={<p className="muted">Loading the editor …</p>}>
                    <TaskEditor label="Task" value={choice.task} onChange={(task) => set({ task })} findings={lintTask} />
                  </Suspense>
                </>
              )}
              {choice.kind === "file" && (
                <TextField label="Task file, relative to the repository" placeholder="ralph_task.md" value={choice.file} onChange={field("file")} spellCheck={false} />
              )}
            </div>
          </Card>
          {choice.kind === "file" && <Preflight choice={choice} forbidden={missing} />}
          {question && (
            <QuestionBox
              problem={question}
              onAnswer={(answer) => {
                setAnswers((before) => ({ ...before, ...answer }));
                start.reset();
              }}
            />
          )}
          {start.isError && !question && <ErrorBox error={start.error} />}
          {preview.isError && <ErrorBox error={preview.error} />}
          {preview.data && <PlanView preview={preview.data} />}
          <div className="row wrap">
            <Button busy={preview.isPending} forbidden={missing} onClick={() => preview.mutate(request)}>
              Show the plan
            </Button>
            <Button kind="primary" icon="play" busy={start.isPending} forbidden={missing} onClick={begin}>
              Start the run
            </Button>
            {missing && <span className="small muted">{`To start, ${missing}.`}</span>}
            {start.isPending && <span className="small muted">The first start of a project may build its image.</span>}
          </div>
        </div>
        <Card title="Settings">
          <div className="stack">
            {choices.isError && <ErrorBox error={choices.error} retry={() => void choices.refetch()} />}
            <Select
              label="Worker"
              value={choice.worker}
              onChange={field("worker")}
              hint={options?.default_agent ? undefined : "Agents need a container engine and a credential."}
              options={[
                { value: "", text: "default" },
                ...(options?.agents ?? []).map((agent) => ({ value: `agent:${agent}`, text: `agent ${agent}` })),
                ...(options?.profiles ?? []).map((profile) => ({ value: `profile:${profile}`, text: `model ${profile}` })),
              ]}
            />
            <TextField label="Or another model" placeholder="zai/glm-4.7" value={choice.model} onChange={field("model")} spellCheck={false} />
            <Select
              label="Sandbox"
              value={choice.sandbox}
              onChange={field("sandbox")}
              hint={sandboxHint(choice.sandbox || options?.default_sandbox || "")}
              options={[{ value: "", text: `default${options?.default_sandbox ? ` (${options.default_sandbox})` : ""}` }, ...(options?.sandboxes ?? []).map(same)]}
            />
            <Select
              label="Mode"
              value={choice.mode}
              onChange={field("mode")}
              options={[{ value: "", text: "default" }, ...(options?.modes ?? modes).map(same)]}
            />
            <TextField label="Iterations" type="number" min={1} value={choice.iterations} onChange={field("iterations")} placeholder="default" />
            <TextField label="Cost in US dollars" type="number" min={0} step="any" value={choice.cost} onChange={field("cost")} placeholder="default" />
            <TextField label="Active time in minutes" type="number" min={1} value={choice.minutes} onChange={field("minutes")} placeholder="default" />
          </div>
        </Card>
      </div>
    </div>
  );
}

/** The most repositories that are offered. */
const MOST_RECENT = 4;

function Recent({ repositories, onPick }: { repositories: { repository: string }[]; onPick: (repository: string) => void }) {
  if (repositories.length === 0) return null;
  return (
    <div className="row wrap" role="group" aria-label="Repositories of earlier runs">
      {repositories.slice(0, MOST_RECENT).map(({ repository }) => (
        <Button key={repository} icon="file" onClick={() => onPick(repository)}>
          {repoName(repository)}
        </Button>
      ))}
    </div>
  );
}

/** The time without a key after which a path is looked at. */
const SETTLED_MS = 350;

/** The value, once it has not changed for a moment. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

const same = (value: string) => ({ value, text: value });

function testHint(command: string | undefined, isKnown: boolean): string {
  if (command) return `Verified by ${command}.`;
  return isKnown ? "No test command was found. A task with checkboxes names its own checks." : "The tests of the repository verify the result.";
}

function sandboxHint(sandbox: string): string {
  if (sandbox === "docker") return "A container without a network interface and without credentials.";
  if (sandbox === "local") return "No isolation: commands run as you, with your network.";
  return "";
}

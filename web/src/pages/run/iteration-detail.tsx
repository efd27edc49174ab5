import { lazy, Suspense, useState } from "react";
import { useActions, useArtifact, useDiff, useTranscript } from "../../api/queries";
import type { IterationSummary, Run, TimelineAction } from "../../api/types";
import { visible, withoutColours } from "../../ui/visible";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { bytes, duration } from "../../ui/format";
import { Icon } from "../../ui/icon";
import { LiveOutput } from "./live-output";
import { TranscriptView } from "./transcript";

const DiffView = lazy(() => import("../../diff/diff-view"));

const parts = ["actions", "transcript", "prompt", "reply", "diff", "output", "metrics"] as const;
type Part = (typeof parts)[number];

/** One iteration: what was asked, what was done, and what came of it. */
export function IterationDetail({ run, summary }: { run: Run; summary: IterationSummary }) {
  const [part, setPart] = useState<Part>("actions");
  const number = summary.iteration;
  const shown = parts.filter((one) => one !== "transcript" || run.agent);
  return (
    <Card title={`Iteration ${number}`} aside={<span className="small muted raw">{summary.summary}</span>}>
      <div className="stack">
        {(summary.evidence.length > 0 || summary.mitigation) && (
          <div className={`notice stack tight small ${(summary.metrics?.loop_score ?? 0) >= 0.4 ? "warn" : ""}`}>
            {summary.evidence.map((line) => (
              <span key={line} className="raw">
                {line}
              </span>
            ))}
            {summary.mitigation && <strong>{summary.mitigation}</strong>}
          </div>
        )}
        <div className="row wrap" role="group" aria-label="Part of the iteration">
          {shown.map((one) => (
            <Button key={one} kind="quiet" aria-pressed={part === one} onClick={() => setPart(one)}>
              {one}
            </Button>
          ))}
        </div>
        {part === "actions" && <Actions run={run} summary={summary} onShowOutput={() => setPart("output")} />}
        {part === "transcript" && <IterationTranscript run={run} number={number} />}
        {part === "prompt" && <ArtifactText run={run} number={number} name="prompt.md" />}
        {part === "reply" && <ArtifactText run={run} number={number} name="response.json" />}
        {part === "diff" && <IterationDiff run={run} number={number} />}
        {part === "output" && <ArtifactText run={run} number={number} name="test_output.txt" />}
        {part === "metrics" && <ArtifactText run={run} number={number} name="metrics.json" />}
      </div>
    </Card>
  );
}

function Actions({ run, summary, onShowOutput }: { run: Run; summary: IterationSummary; onShowOutput: () => void }) {
  const actions = useActions(run.id, summary.iteration);
  const isOpen = summary.finished_at === null || summary.finished_at === undefined;
  if (actions.isError) return <ErrorBox error={actions.error} />;
  if (actions.isPending) return <p className="muted">Loading …</p>;
  const list = actions.data.actions;
  return (
    <div>
      {list.length === 0 && !isOpen && <Empty icon="list" title="No action was performed." />}
      {list.map((action) => (
        <Action key={action.seq} action={action} onShowOutput={onShowOutput} />
      ))}
      {isOpen && <LiveOutput run={run.id} iteration={summary.iteration} after={list.at(-1)?.seq ?? 0} />}
    </div>
  );
}

function Action({ action, onShowOutput }: { action: TimelineAction; onShowOutput: () => void }) {
  const text = withoutColours(action.tail);
  const icon = action.state === "running" ? "working" : action.state === "succeeded" ? "success" : "failure";
  return (
    <details className="action">
      <summary>
        <Icon name={icon} />
        <span className="visually-hidden">{action.state}</span>
        <strong>{action.action}</strong>
        <span className="code cut grow">{visible(action.label)}</span>
        <span className="small muted number">{action.duration_ms === null || action.duration_ms === undefined ? "" : duration(action.duration_ms / 1000)}</span>
      </summary>
      {action.result && <p className="small muted raw">{resultWords(action.result)}</p>}
      {text && (
        <pre className="output" tabIndex={0}>
          {visible(text)}
        </pre>
      )}
      {outputBytes(action) > 0 && (
        <p className="row wrap small muted">
          {bytes(outputBytes(action))} of output
          <Button kind="quiet" onClick={onShowOutput}>
            Show the output of the iteration
          </Button>
        </p>
      )}
      {text === "" && outputBytes(action) === 0 && action.action === "run" && action.state !== "running" && <p className="small faint">No output.</p>}
    </details>
  );
}

/** The size of what a command wrote. */
function outputBytes({ result }: TimelineAction): number {
  if (typeof result !== "object" || result === null) return 0;
  const { stdout_bytes: out, stderr_bytes: err } = result as { stdout_bytes?: unknown; stderr_bytes?: unknown };
  return Number(out ?? 0) + Number(err ?? 0);
}

function resultWords(result: unknown): string {
  if (typeof result === "string") return result;
  if (typeof result !== "object" || result === null) return "";
  const { why, detail, ended } = result as { why?: unknown; detail?: unknown; ended?: unknown };
  if (typeof why === "string") return why;
  if (typeof detail === "string") return detail;
  if (typeof ended === "object" && ended !== null && "exited" in ended) return `exit code ${String(ended.exited)}`;
  return typeof ended === "string" ? ended.replaceAll("_", " ") : "";
}

function ArtifactText({ run, number, name }: { run: Run; number: number; name: string }) {
  const artifact = useArtifact(run.id, number, name);
  if (artifact.isError) return <ErrorBox error={artifact.error} />;
  if (artifact.isPending) return <p className="muted">Loading …</p>;
  const { text, size } = artifact.data;
  return (
    <div className="stack tight">
      <p className="small muted">
        <span className="code">{name}</span>, {bytes(size)}
        {text.length < size && ", only its end is shown"}
      </p>
      {text === "" ? <p className="faint">It is empty.</p> : (
        <pre className="output tall" tabIndex={0}>
          {visible(withoutColours(text))}
        </pre>
      )}
    </div>
  );
}

function IterationDiff({ run, number }: { run: Run; number: number }) {
  const diff = useDiff(run.id, { iteration: number });
  if (diff.isError) return <ErrorBox error={diff.error} />;
  if (diff.isPending) return <p className="muted">Loading …</p>;
  return (
    <Suspense fallback={<p className="muted">Loading …</p>}>
      <DiffView text={diff.data.patch} cut={diff.data.cut} />
    </Suspense>
  );
}

function IterationTranscript({ run, number }: { run: Run; number: number }) {
  const transcript = useTranscript(run.id, number);
  if (transcript.isError) return <ErrorBox error={transcript.error} />;
  if (transcript.isPending) return <p className="muted">Loading …</p>;
  return <TranscriptView transcript={transcript.data} />;
}

import { lazy, Suspense } from "react";
import { useIterations, usePull } from "../../api/queries";
import type { Run } from "../../api/types";
import { useNow } from "../../shell/now";
import { Card, Facts } from "../../ui/card";
import { ago, count, dateTime, duration, plural, shortCommit, usd } from "../../ui/format";
import { Icon } from "../../ui/icon";
import { LoopScore } from "../../ui/loop-score";
import { Meter } from "../../ui/meter";
import { Badge } from "../../ui/status";
import { isAddress } from "../home/run-row";
import { Delivery } from "./delivery";

const Charts = lazy(() => import("./charts"));

/** The state of a run at a glance. */
export function Overview({ run }: { run: Run }) {
  const iterations = useIterations(run.id);
  return (
    <div className="columns">
      <div className="stack loose">
        <Card title="Progress" aside={<Verified run={run} />}>
          <Boxes run={run} />
        </Card>
        <Suspense fallback={<Card title="Iterations">Loading …</Card>}>
          <Charts run={run} iterations={iterations.data?.iterations ?? []} />
        </Suspense>
        <Warnings run={run} />
      </div>
      <div className="stack loose">
        <Card title="Budgets">
          <div className="stack">
            <Meter label="Iterations" {...run.budgets.iterations} format={String} />
            <Meter label="Cost" {...run.budgets.cost_usd} format={usd} />
            <Meter label="Active time" {...run.budgets.wall_time_seconds} format={duration} />
            <Meter label="Tokens" {...run.budgets.tokens} format={count} />
          </div>
        </Card>
        <PullRequest run={run} />
        <About run={run} />
      </div>
    </div>
  );
}

function Verified({ run }: { run: Run }) {
  if (!run.verified) return null;
  return run.verified.green ? (
    <Badge tone="good" icon="shield" text={`verified in a clean room: ${shortCommit(run.verified.commit)}`} />
  ) : (
    <Badge tone="bad" icon="shieldAlert" text={`the clean room is red: ${shortCommit(run.verified.commit)}`} />
  );
}

function Boxes({ run }: { run: Run }) {
  const boxes = run.boxes;
  if (!boxes) return <p className="muted">The task file of the run cannot be read.</p>;
  return (
    <ul className="boxes">
      {boxes.map((box) => (
        <li key={box.id} className={box.ticked ? "ticked" : ""}>
          <Icon name={box.ticked ? "success" : "pending"} />
          <span className="raw">
            {box.text}
            <span className="visually-hidden">{box.ticked ? " (verified)" : " (open)"}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}

function Warnings({ run }: { run: Run }) {
  const findings = run.findings ?? [];
  if (findings.length === 0) return null;
  return (
    <Card title="Check before you merge">
      <ul className="stack tight">
        {findings.map((finding, index) => (
          <li key={index} className="row">
            <Icon name="alert" />
            <span className="raw">{finding.text}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function PullRequest({ run }: { run: Run }) {
  const pull = usePull(run.id, run.pr !== null && run.pr !== undefined);
  const checks = pull.data?.checks;
  return (
    <Card title="Pull request">
      <div className="stack">
        {run.pr ? (
          <p className="row wrap">
            <Icon name="pull" />
            {isAddress(run.pr.url) ? (
              <a href={run.pr.url} target="_blank" rel="noreferrer">
                #{run.pr.number}
              </a>
            ) : (
              <span>#{run.pr.number}, a record on this machine</span>
            )}
            <Badge text={run.pr.state} tone={run.pr.state === "merged" ? "good" : "calm"} />
          </p>
        ) : (
          <p className="muted">It is opened with the first delivered commit.</p>
        )}
        {pull.data && (
          <details>
            <summary className="raw">{pull.data.title}</summary>
            <pre className="output" tabIndex={0}>
              {pull.data.body}
            </pre>
          </details>
        )}
        {pull.data?.overlaps.map((overlap) => (
          <p key={overlap.number} className="notice warn small raw">
            {`#${overlap.number} ${overlap.title} changes ${overlap.shared} of the same files: ${overlap.files.join(", ")}`}
          </p>
        ))}
        {checks && (
          <p className="small number">
            Checks: {checks.counts.passed} passed, {checks.counts.failed} failed, {checks.counts.pending} pending
            {checks.failed.length > 0 && <span className="raw"> ({checks.failed.join(", ")})</span>}
          </p>
        )}
        <Delivery run={run} />
      </div>
    </Card>
  );
}

function About({ run }: { run: Run }) {
  const now = useNow();
  return (
    <Card title="Run">
      <Facts
        facts={[
          ["Repository", run.repo],
          ["Base", run.base_branch],
          ["Engine", run.engine ?? "–"],
          ["Sandbox", run.sandbox ?? "–"],
          ["Loop score", <LoopScore key="score" score={run.loop_score} />],
          ["Tokens", `${count(run.tokens.input)} in, ${count(run.tokens.output)} out`],
          ["Started", run.started_at ? dateTime(run.started_at) : "–"],
          ["Last event", run.updated_at ? ago(run.updated_at, now) : "–"],
          ["Notices", plural(run.notices, "notice")],
          ["Id", <span key="id" className="code">{run.id}</span>],
        ]}
      />
    </Card>
  );
}


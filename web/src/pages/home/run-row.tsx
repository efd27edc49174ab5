import { Link } from "@tanstack/react-router";
import type { ListedRun } from "../../api/types";
import { useNow } from "../../shell/now";
import { ago, plural, repoName, usd } from "../../ui/format";
import { Icon } from "../../ui/icon";
import { Meter } from "../../ui/meter";
import { LoopScore } from "../../ui/loop-score";
import { StatusBadge } from "../../ui/status";

/** A run in a list. */
export function RunRow({ run }: { run: ListedRun }) {
  const now = useNow();
  const boxes = run.boxes ?? [];
  const ticked = boxes.filter((box) => box.ticked).length;
  return (
    <li className="run-row">
      <div className="run-main">
        <div className="row wrap">
          <StatusBadge status={run.queue_position ? "queued" : run.status} />
          <Link to="/runs/$run" params={{ run: run.id }} className="run-title">
            {run.title || run.task_id || run.id}
          </Link>
        </div>
        <p className="small muted cut">
          {run.repo && <span title={run.repo}>{repoName(run.repo)}</span>}
          {run.branch && (
            <>
              {" · "}
              <span className="code">{run.branch}</span>
            </>
          )}
          {" · "}
          {run.agent ?? run.model}
        </p>
        {run.reason && <p className="small raw run-reason">{run.reason}</p>}
        {run.activity && <p className="small muted cut">{run.activity}</p>}
        {run.queue_position && <p className="small muted">{`position ${run.queue_position} in the queue`}</p>}
      </div>
      <dl className="run-numbers small">
        <div>
          <dt>Iteration</dt>
          <dd className="number">
            {run.iteration}
            {run.budgets?.iterations.limit ? <span className="faint"> of {run.budgets.iterations.limit}</span> : null}
          </dd>
        </div>
        <div>
          <dt>Boxes</dt>
          <dd className="number">{boxes.length === 0 ? "–" : `${ticked} of ${boxes.length}`}</dd>
        </div>
        <div>
          <dt>Loop score</dt>
          <dd>
            <LoopScore score={run.loop_score} />
          </dd>
        </div>
        <div>
          <dt>Cost</dt>
          <dd className="number">
            {usd(run.cost_usd)}
            {run.budgets?.cost_usd.limit ? <span className="faint"> of {usd(run.budgets.cost_usd.limit)}</span> : null}
          </dd>
        </div>
      </dl>
      <Share used={spent(run)} />
      <div className="run-end small">
        {run.pr && (
          <span className="row">
            <Icon name="pull" size={14} />
            {isAddress(run.pr.url) ? (
              <a href={run.pr.url} target="_blank" rel="noreferrer">
                #{run.pr.number}
              </a>
            ) : (
              <span>#{run.pr.number}</span>
            )}
            <span className="muted">{run.pr.state}</span>
          </span>
        )}
        {run.updated_at && <time dateTime={run.updated_at}>{ago(run.updated_at, now)}</time>}
        {run.warnings ? <span className="muted">{plural(run.warnings, "warning")}</span> : null}
      </div>
    </li>
  );
}

/** The largest used share of a budget: the one that ends the run first. */
function spent({ budgets }: ListedRun): { name: string; share: number } | undefined {
  if (!budgets) return undefined;
  const names = { iterations: "Iterations", cost_usd: "Cost", wall_time_seconds: "Active time", tokens: "Tokens" } as const;
  const shares = (Object.keys(names) as (keyof typeof names)[]).flatMap((key) => {
    const { used, limit } = budgets[key];
    return limit ? [{ name: names[key], share: Math.min(1, used / limit) }] : [];
  });
  return shares.sort((a, b) => b.share - a.share)[0];
}

function Share({ used }: { used: { name: string; share: number } | undefined }) {
  return <div className="run-share">{used && <Meter label={used.name} used={used.share * 100} limit={100} format={(value) => `${Math.round(value)} %`} brief />}</div>;
}

/** Only addresses of the web become links: an address comes from a source host. */
export function isAddress(url: string): boolean {
  return /^https?:\/\//i.test(url);
}

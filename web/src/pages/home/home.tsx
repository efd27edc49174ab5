import { Link } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState } from "react";
import { useFleet } from "../../api/machine";
import { useRuns } from "../../api/queries";
import type { ListedRun } from "../../api/types";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { useTitle } from "../../shell/title";
import { RunRow } from "./run-row";
import { sections, withQueue } from "./sections";
import "./home.css";

const statuses = ["all", "needs you", "working", "queued", "finished"] as const;
type StatusFilter = (typeof statuses)[number];

/** All runs: first those that need the user, then those that work, wait and have ended. */
export function Home() {
  const [text, setText] = useState("");
  const [wanted, setWanted] = useState<StatusFilter>("all");
  const [repo, setRepo] = useState("");
  const deferred = useDeferredValue(text.trim());
  const runs = useRuns({ text: deferred || undefined, repo: repo || undefined, limit: 200 });
  const fleet = useFleet();
  const all = useMemo(() => withQueue(runs.data?.runs ?? [], fleet.data?.runs ?? []), [runs.data, fleet.data]);
  const shown = sections(all).filter((section) => wanted === "all" || section.kind === wanted);
  useTitle("Runs");
  const repos = [...new Set(all.flatMap((run) => run.repo ?? []))].sort();
  const isEmpty = runs.isSuccess && all.length === 0 && deferred === "" && repo === "";
  return (
    <div className="page">
      <header className="page-header">
        <h1>Runs</h1>
        <Link to="/new" className="button primary">
          New run
        </Link>
      </header>
      {!isEmpty && (
        <div className="filters" role="search">
          <input
            type="search"
            className="input"
            placeholder="Search titles, tasks, repositories and ids"
            aria-label="Search runs"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <div className="row wrap" role="group" aria-label="Status">
            {statuses.map((status) => (
              <Button key={status} kind="quiet" aria-pressed={wanted === status} onClick={() => setWanted(status)}>
                {status}
              </Button>
            ))}
          </div>
          {repos.length > 1 && (
            <select className="input" aria-label="Repository" value={repo} onChange={(event) => setRepo(event.target.value)}>
              <option value="">all repositories</option>
              {repos.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
          )}
        </div>
      )}
      {runs.isError && <ErrorBox error={runs.error} retry={() => void runs.refetch()} />}
      {runs.isPending && <p className="muted">Loading the runs …</p>}
      {isEmpty && <FirstRun />}
      {runs.isSuccess && !isEmpty && all.length === 0 && <Empty icon="search" title="No run matches." />}
      {shown.map((section) => (
        <Card key={section.kind} title={`${section.title} (${section.runs.length})`}>
          <RunTable runs={section.runs} label={section.title} />
        </Card>
      ))}
    </div>
  );
}

function RunTable({ runs, label }: { runs: ListedRun[]; label: string }) {
  return (
    <ul className="runs" aria-label={label}>
      {runs.map((run) => (
        <RunRow key={run.id} run={run} />
      ))}
    </ul>
  );
}

function FirstRun() {
  return (
    <Card>
      <Empty icon="play" title="No run yet">
        <p>Give ralph a repository and one sentence. It works until the result is verified in a clean room, and asks when it needs you.</p>
        <p>
          <Link to="/new" className="button primary">
            Start the first run
          </Link>
        </p>
        <p className="small">
          To look around first, run <code>ralph demo</code> in a terminal: it needs no account, no model and no network.
        </p>
      </Empty>
    </Card>
  );
}

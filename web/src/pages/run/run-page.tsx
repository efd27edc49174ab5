import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, type ComponentType } from "react";
import { useRun } from "../../api/queries";
import type { Run } from "../../api/types";
import { useTitle } from "../../shell/title";
import { isTyping } from "../../shell/shortcuts";
import { ErrorBox } from "../../ui/error-box";
import { repoName, shortCommit } from "../../ui/format";
import { Badge, StatusBadge } from "../../ui/status";
import { Attention } from "./attention";
import { Controls } from "./controls";
import { Overview } from "./overview";
import "./run-page.css";

type Tab = { id: string; text: string; view: ComponentType<{ run: Run }> };

/** Parts with an editor, a diff or a table load their code when they are opened. */
const tabs: Tab[] = [
  { id: "overview", text: "Overview", view: Overview },
  { id: "timeline", text: "Timeline", view: lazy(() => import("./timeline")) },
  { id: "logs", text: "Logs", view: lazy(() => import("./logs")) },
  { id: "task", text: "Task", view: lazy(() => import("./task")) },
  { id: "guidance", text: "Guidance", view: lazy(() => import("./guidance")) },
  { id: "diff", text: "Diff", view: lazy(() => import("./diff")) },
  { id: "evidence", text: "Evidence", view: lazy(() => import("./evidence")) },
  { id: "diagnostics", text: "Diagnostics", view: lazy(() => import("./diagnostics")) },
  { id: "sandbox", text: "Sandbox", view: lazy(() => import("./sandbox")) },
];

/** One run. */
export function RunPage() {
  const { run: id, tab } = useParams({ strict: false }) as { run: string; tab?: string };
  const query = useRun(id);
  const run = query.data;
  useTitle(run ? `${run.title || run.task_id} · ${run.status}` : "Run");
  const current = tabs.find((one) => one.id === (tab ?? "overview")) ?? tabs[0]!;
  useTabKeys(id);
  if (query.isError && !run) return <ErrorBox error={query.error} retry={() => void query.refetch()} />;
  if (!run) return <p className="muted">Loading the run …</p>;
  const View = current.view;
  return (
    <div className="page run-page">
      <header className="stack tight">
        <p className="small muted">
          <Link to="/">Runs</Link> / <span title={run.repo}>{repoName(run.repo)}</span>
        </p>
        <div className="page-header">
          <div className="stack tight grow">
            <h1 className="raw">{run.title || run.task_id}</h1>
            <div className="row wrap small muted">
              <StatusBadge status={run.status} />
              <Badge text={`mode ${run.mode}`} />
              <span className="code">{run.branch}</span>
              {run.head && <span className="code">{shortCommit(run.head)}</span>}
              <span>{run.agent ? `agent ${run.agent}` : run.model}</span>
            </div>
          </div>
          <Controls run={run} />
        </div>
      </header>
      <Attention run={run} />
      <nav className="tabs" aria-label="Parts of the run">
        {tabs.map((one) => (
          <Link
            key={one.id}
            to="/runs/$run/$tab"
            params={{ run: id, tab: one.id }}
            replace
            aria-current={one.id === current.id ? "page" : undefined}
          >
            {one.text}
          </Link>
        ))}
      </nav>
      <Suspense fallback={<p className="muted">Loading …</p>}>
        <View run={run} />
      </Suspense>
    </div>
  );
}

/** The keys 1 to 9 open the parts of the run. */
function useTabKeys(run: string): void {
  const navigate = useNavigate();
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const tab = /^[1-9]$/.test(event.key) ? tabs[Number(event.key) - 1] : undefined;
      if (tab) void navigate({ to: "/runs/$run/$tab", params: { run, tab: tab.id }, replace: true });
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [navigate, run]);
}

import { useFleet, usePruneSandboxes, useSandboxes } from "../../api/machine";
import type { components } from "../../api/schema";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { Adoption } from "./adoption";

type Entry = components["schemas"]["PruneEntry"];

/** The sandboxes of all runs, and those whose run is gone. */
export function Sandboxes() {
  const query = useSandboxes();
  const fleet = useFleet();
  const prune = usePruneSandboxes();
  const report = query.data;
  const orphans = fleet.data?.orphans ?? [];
  return (
    <div className="stack loose">
      {query.isError && <ErrorBox error={query.error} />}
      {orphans.length > 0 && (
        <Card title="Orphaned runs">
          <div className="stack">
            <p className="muted">Their directories are gone; a sandbox or a snapshot may have the last copy of the work. Nothing removes them by itself.</p>
            {orphans.map((orphan) => (
              <Adoption key={orphan.run} orphan={orphan} />
            ))}
          </div>
        </Card>
      )}
      <Card
        title="Sandboxes"
        aside={
          <Button
            icon="trash"
            busy={prune.isPending}
            forbidden={report && report.removed.length > 0 ? undefined : "no sandbox is stale"}
            onClick={() => prune.mutate(undefined, { onError: toastError })}
          >
            Remove the stale ones
          </Button>
        }
      >
        {report && report.kept.length + report.removed.length === 0 && <Empty icon="server" title="There is no sandbox." />}
        <List title="Stale" entries={report?.removed ?? []} />
        <List title="In use" entries={report?.kept ?? []} />
        <List title="Failed" entries={report?.failed ?? []} />
      </Card>
    </div>
  );
}

function List({ title, entries }: { title: string; entries: Entry[] }) {
  if (entries.length === 0) return null;
  return (
    <section className="stack tight">
      <h3>{title}</h3>
      <ul className="stack tight small">
        {entries.map((entry) => (
          <li key={`${entry.provider} ${entry.id}`} className="row wrap">
            <span className="code">{entry.id}</span>
            <span className="muted">{entry.provider}</span>
            <span className="muted raw">{entry.problem ?? entry.why}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

import { useCleanDisk, useDisk } from "../../api/machine";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { bytes, plural } from "../../ui/format";
import { Link } from "@tanstack/react-router";

/** The disk space of runs, and what would be removed. */
export function Disk() {
  const query = useDisk();
  const clean = useCleanDisk();
  const report = query.data;
  const removable = report?.runs.filter((run) => run.verdict === "remove") ?? [];
  return (
    <Card
      title={report ? `${bytes(report.bytes)} in use` : "Disk"}
      aside={
        <Button
          icon="trash"
          busy={clean.isPending}
          forbidden={removable.length > 0 ? undefined : "nothing is old enough"}
          onClick={() => clean.mutate(false, { onError: toastError })}
        >
          {removable.length === 0 ? "Nothing to remove" : `Remove ${plural(removable.length, "old run")}`}
        </Button>
      }
    >
      {query.isError && <ErrorBox error={query.error} />}
      {report && (
        <div className="table-box" tabIndex={0} role="region" aria-label="Disk use of runs">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">Status</th>
                <th scope="col">Files</th>
                <th scope="col">Sandbox</th>
                <th scope="col">Removed by a clean-up</th>
              </tr>
            </thead>
            <tbody>
              {report.runs.map((run) => (
                <tr key={run.run}>
                  <th scope="row">
                    <Link to="/runs/$run" params={{ run: run.run }}>
                      {run.task_id ?? run.run}
                    </Link>{" "}
                    <span className="faint code">{run.task_id ? run.run : ""}</span>
                  </th>
                  <td>{run.status}</td>
                  <td className="number">{bytes(run.bytes)}</td>
                  <td className="number">{bytes(run.sandbox_bytes)}</td>
                  <td className="raw">{run.verdict === "remove" ? "yes" : `no: ${run.why}`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

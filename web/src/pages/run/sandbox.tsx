import { useState } from "react";
import { useEgress, useFile, useSandbox, useTree } from "../../api/queries";
import { useSaveFile } from "../../api/steering";
import type { Run } from "../../api/types";
import { RequestFailed } from "../../api/problem";
import { toast } from "../../shell/toast";
import { visible } from "../../log/pieces";
import { Button } from "../../ui/button";
import { Card, Empty, Facts } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { bytes, clockTime } from "../../ui/format";
import { Badge } from "../../ui/status";
import { BlockedHosts } from "./attention";
import "./sandbox.css";

const isolations = {
  none: { text: "no isolation", tone: "warn" },
  container: { text: "container, no network interface", tone: "good" },
  machine: { text: "virtual machine", tone: "good" },
} as const;

/** The sandbox of the run: what it is, what it uses, what left it, and its files. */
export default function Sandbox({ run }: { run: Run }) {
  return (
    <div className="columns">
      <div className="stack loose">
        <Files run={run} />
      </div>
      <div className="stack loose">
        <State run={run} />
        <Egress run={run} />
      </div>
    </div>
  );
}

function State({ run }: { run: Run }) {
  const query = useSandbox(run.id);
  const sandbox = query.data;
  if (query.isError) return <ErrorBox error={query.error} retry={() => void query.refetch()} />;
  if (!sandbox) return <p className="muted">Loading …</p>;
  return (
    <Card title="Sandbox" aside={<Badge {...isolations[sandbox.isolation]} />}>
      <Facts
        facts={[
          ["Provider", sandbox.provider],
          ["Id", sandbox.id ?? "none"],
          ["State", sandbox.state.replaceAll("_", " ")],
        ]}
      />
    </Card>
  );
}

function Egress({ run }: { run: Run }) {
  const query = useEgress(run.id);
  const decisions = query.data?.decisions ?? [];
  return (
    <Card title="Network">
      <div className="stack">
        {(run.blocked_hosts ?? []).length > 0 ? (
          <>
            <h3>Blocked hosts</h3>
            <BlockedHosts run={run} />
          </>
        ) : (
          <p className="muted">No host was blocked.</p>
        )}
        {(run.allowed_hosts ?? []).length > 0 && (
          <>
            <h3>Allowed by you</h3>
            <ul className="code small">
              {run.allowed_hosts?.map((host) => (
                <li key={host}>{host}</li>
              ))}
            </ul>
          </>
        )}
        {decisions.length > 0 && (
          <details>
            <summary>The last {decisions.length} decisions</summary>
            <ul className="stack tight small">
              {decisions.map((decision, index) => (
                <li key={index} className="row wrap">
                  <span className="faint number">{clockTime(decision.at)}</span>
                  <span className="code raw grow">{decision.host}</span>
                  <span>{decision.verdict === "allowed" ? "allowed" : "blocked"}</span>
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </Card>
  );
}

function Files({ run }: { run: Run }) {
  const tree = useTree(run.id);
  const [path, setPath] = useState<string | null>(null);
  const [filter, setFilter] = useState("");
  const files = (tree.data?.entries ?? []).filter((entry) => entry.kind !== "directory" && entry.path.toLowerCase().includes(filter.toLowerCase()));
  return (
    <Card title="Files" aside={<Button icon="refresh" kind="quiet" aria-label="Load again" busy={tree.isFetching} onClick={() => void tree.refetch()} />}>
      <div className="stack">
        {tree.isError && <ErrorBox error={tree.error} />}
        <input type="search" className="input" aria-label="Search files" placeholder="Search files" value={filter} onChange={(event) => setFilter(event.target.value)} />
        {tree.isSuccess && files.length === 0 && <Empty icon="file" title="No file." />}
        <ul className="file-list" tabIndex={0} aria-label="Files of the repository">
          {files.slice(0, 500).map((entry) => (
            <li key={entry.path}>
              <button type="button" className="file-entry" aria-pressed={path === entry.path} onClick={() => setPath(entry.path)}>
                <span className="code cut">{visible(entry.path)}</span>
                <span className="small faint number">{bytes(entry.size)}</span>
              </button>
            </li>
          ))}
        </ul>
        {files.length > 500 && <p className="small muted">{files.length - 500} further files; search for one.</p>}
        {path !== null && <FileText key={path} run={run} path={path} />}
      </div>
    </Card>
  );
}

function FileText({ run, path }: { run: Run; path: string }) {
  const file = useFile(run.id, path);
  const save = useSaveFile(run.id, path);
  const [text, setText] = useState<string | null>(null);
  if (file.isError) return <ErrorBox error={file.error} />;
  if (!file.data) return <p className="muted">Loading …</p>;
  const shown = text ?? file.data.text;
  const isStale = save.error instanceof RequestFailed && save.error.problem.status === 412;
  return (
    <div className="stack">
      <div className="row spread wrap">
        <h3 className="code raw">{visible(path)}</h3>
        {text === null ? (
          <Button icon="edit" onClick={() => setText(file.data.text)}>
            Edit
          </Button>
        ) : (
          <span className="row">
            <Button
              onClick={() => {
                setText(null);
                save.reset();
              }}
            >
              Cancel
            </Button>
            <Button
              kind="primary"
              busy={save.isPending}
              onClick={() =>
                save.mutate(
                  { text, version: file.data.version },
                  {
                    onSuccess: () => {
                      toast(`${path} is saved`, "good");
                      setText(null);
                      void file.refetch();
                    },
                  },
                )
              }
            >
              Save
            </Button>
          </span>
        )}
      </div>
      {save.isError && <ErrorBox error={save.error} />}
      {isStale && <Button onClick={() => void file.refetch()}>Load the new version; your text stays</Button>}
      {text === null ? (
        <pre className="output">{visible(shown)}</pre>
      ) : (
        <textarea className="input code" rows={18} aria-label={`Text of ${path}`} value={shown} onChange={(event) => setText(event.target.value)} />
      )}
    </div>
  );
}

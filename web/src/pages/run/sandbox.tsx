import { useState, type ReactNode } from "react";
import { useEgress, useFile, useSandbox, useTree } from "../../api/queries";
import { useSaveFile } from "../../api/steering";
import type { Run } from "../../api/types";
import { RequestFailed } from "../../api/problem";
import { toast } from "../../shell/toast";
import { visible } from "../../ui/visible";
import { Button } from "../../ui/button";
import { Card, Empty, Facts } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { bytes, clockTime, plural } from "../../ui/format";
import { Icon } from "../../ui/icon";
import { Badge } from "../../ui/status";
import { Forbidden, forbidden } from "./forbidden";
import { Hosts } from "./hosts";
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
  const { container, local } = sandbox;
  const facts: [string, ReactNode][] = [
    ["Provider", sandbox.provider],
    ["State", sandbox.state.replaceAll("_", " ")],
    ["Id", sandbox.id ? <span className="code">{sandbox.id}</span> : "none"],
  ];
  if (container) {
    facts.push(
      ["Image", <span className="code">{container.image}</span>],
      ["Processors", container.millicpus ? String(container.millicpus / 1000) : "as the engine allows"],
      ["Memory", container.memory ? bytes(container.memory) : "as the engine allows"],
      ["Disk", `at most ${bytes(container.disk)}`],
      ["Processes", `at most ${container.processes}`],
    );
  }
  if (local) facts.push(["Memory", `at most ${bytes(local.memory)}`], ["Processes", `at most ${local.processes}`]);
  if (sandbox.disk_bytes !== null && sandbox.disk_bytes !== undefined) facts.push(["Disk in use", bytes(sandbox.disk_bytes)]);
  if (sandbox.clean_rooms.length > 0) facts.push(["Clean rooms", <span className="code">{sandbox.clean_rooms.join(", ")}</span>]);
  return (
    <Card title="Sandbox" aside={<Badge {...isolations[sandbox.isolation]} />}>
      <div className="stack">
        <Facts facts={facts} />
        {sandbox.isolation === "none" && (
          <p className="notice warn small">Commands run as you, on this machine and with its network. A container keeps them apart.</p>
        )}
        {sandbox.protection.length > 0 && (
          <ul className="small muted stack tight">
            {sandbox.protection.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        )}
      </div>
    </Card>
  );
}

const policies: Record<string, string> = {
  deny: "Only the model and the agent's own hosts are reachable.",
  allowlist: "The hosts of your list are reachable.",
  "allow-all": "Every public host is reachable.",
};

/** What left the sandbox, what could not, and which hosts the project's files name. */
function Egress({ run }: { run: Run }) {
  const query = useEgress(run.id);
  if (query.isError) return <ErrorBox error={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <p className="muted">Loading …</p>;
  const { policy, blocked, suggested, allowed, decisions, further_blocked } = query.data;
  if (!policy) {
    return (
      <Card title="Network">
        <p className="muted">This sandbox has no gate: its commands reach whatever this machine reaches.</p>
      </Card>
    );
  }
  return (
    <Card title="Network" aside={<Badge text={`policy ${policy}`} />}>
      <div className="stack">
        <p className="small muted">{policies[policy] ?? policy}</p>
        {blocked.length > 0 && (
          <>
            <h3>Blocked hosts</h3>
            <Hosts run={run} hosts={blocked.map(({ host, reason, command }) => ({ host, why: [reason, command].filter(Boolean).join(", by ") }))} />
          </>
        )}
        {further_blocked > 0 && <p className="small muted">{`${further_blocked} further blocked hosts were not recorded.`}</p>}
        {suggested.length > 0 && (
          <>
            <h3>Named by the project</h3>
            <Hosts run={run} hosts={suggested.map(({ host, file, why }) => ({ host, why: `${why}: ${file}` }))} />
          </>
        )}
        {allowed.length > 0 && (
          <>
            <h3>Allowed by you</h3>
            <ul className="code small">
              {allowed.map((host) => (
                <li key={host}>{host}</li>
              ))}
            </ul>
          </>
        )}
        {blocked.length + suggested.length + allowed.length + decisions.length === 0 && <p className="muted">No connection was tried.</p>}
        {decisions.length > 0 && (
          <details>
            <summary>{`The last ${plural(decisions.length, "decision")}`}</summary>
            <ul className="stack tight small decisions" tabIndex={0} aria-label="Decisions">
              {[...decisions].reverse().map((decision, index) => (
                <li key={index} className="row">
                  <Icon name={decision.verdict === "allowed" ? "check" : "ban"} size={14} />
                  <span className="visually-hidden">{decision.verdict}</span>
                  <span className="faint number">{clockTime(decision.at)}</span>
                  <span className="code raw grow">{`${decision.host}:${decision.port}`}</span>
                  <span className="faint number">{(decision.count ?? 1) > 1 ? `${decision.count}×` : ""}</span>
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
          <Button icon="edit" forbidden={forbidden(run, "edit")} onClick={() => setText(file.data.text)}>
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
      <Forbidden run={run} command="edit" />
      {save.isError && <ErrorBox error={save.error} />}
      {isStale && <Button onClick={() => void file.refetch()}>Load the new version; your text stays</Button>}
      {text === null ? (
        <pre className="output" tabIndex={0}>
          {visible(shown)}
        </pre>
      ) : (
        <textarea className="input code" rows={18} aria-label={`Text of ${path}`} value={shown} onChange={(event) => setText(event.target.value)} />
      )}
    </div>
  );
}

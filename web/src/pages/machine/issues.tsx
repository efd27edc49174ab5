import { useState } from "react";
import { useIssues, usePoller, useScmCheck, useStartPoller, useStopPoller } from "../../api/machine";
import type { components } from "../../api/schema";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card, Empty, Facts } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { TextField } from "../../ui/field";
import { Badge, type Tone } from "../../ui/status";
import { Link } from "@tanstack/react-router";

type Status = components["schemas"]["IssueEntryStatus"];

const tones: Record<Status, Tone> = { ready: "busy", "in-progress": "busy", done: "good", "needs-attention": "warn", blocked: "calm" };

/** A repository on GitHub: its credential, its issues, and the poller that works on them. */
export function Issues() {
  const [repo, setRepo] = useState("");
  const [chosen, setChosen] = useState("");
  const check = useScmCheck();
  const issues = useIssues(chosen);
  return (
    <div className="stack loose">
      <Card title="Repository">
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            setChosen(repo.trim());
            if (repo.trim() !== "") check.mutate(repo.trim());
          }}
        >
          <TextField label="Repository on GitHub" placeholder="OWNER/NAME" value={repo} onChange={(event) => setRepo(event.target.value)} spellCheck={false} />
          <div>
            <Button type="submit" busy={check.isPending} forbidden={repo.trim() === "" ? "name a repository first" : undefined}>
              Check and show its issues
            </Button>
          </div>
          {check.isError && <ErrorBox error={check.error} />}
          {check.data && <CheckResult report={check.data} />}
        </form>
      </Card>
      <Poller repo={chosen} />
      {chosen !== "" && (
        <Card title="Issues">
          {issues.isError && <ErrorBox error={issues.error} />}
          {issues.data?.issues.length === 0 && <Empty icon="list" title="No open issue has the label of a specification." />}
          <ul className="stack">
            {issues.data?.issues.map((issue) => (
              <li key={issue.number} className="stack tight">
                <span className="row wrap">
                  <Badge tone={tones[issue.status]} text={issue.status} />
                  <strong className="number">#{issue.number}</strong>
                  <span className="raw">{issue.title}</span>
                  {issue.run && (
                    <Link to="/runs/$run" params={{ run: issue.run }}>
                      its run
                    </Link>
                  )}
                </span>
                <span className="small muted">
                  {issue.waits_for.length > 0 && `waits for ${issue.waits_for.map((number) => `#${number}`).join(", ")}. `}
                  {issue.cycle.length > 0 && `depends on itself through ${issue.cycle.map((number) => `#${number}`).join(", ")}. `}
                  {!issue.is_by_author && `by ${issue.author}, who is not in the list of authors. `}
                </span>
              </li>
            ))}
          </ul>
        </Card>
      )}
    </div>
  );
}

function CheckResult({ report }: { report: components["schemas"]["ScmCheckReport"] }) {
  if (report.kind === "local") return <p className={`notice ${report.usable ? "good" : "bad"} raw`}>{report.path}</p>;
  const missing = report.permissions.filter((permission) => permission.missing && permission.required);
  return (
    <div className="stack">
      <p>
        <Badge tone={report.usable ? "good" : "bad"} text={report.usable ? "usable" : "not usable"} />
      </p>
      <Facts
        facts={[
          ["Repository", report.repository],
          ["Default branch", report.default_branch],
          ["Credential", `${report.credential.kind} from ${report.credential.source}`],
          ["Acts as", report.acts_as],
          ["Missing permissions", missing.length === 0 ? "none" : missing.map((permission) => `${permission.name}: ${permission.needs}`).join(", ")],
        ]}
      />
      {report.problems.map((problem) => (
        <p key={problem.what} className="notice bad raw">
          {problem.what} — {problem.why} — {problem.fix}
        </p>
      ))}
    </div>
  );
}

function Poller({ repo }: { repo: string }) {
  const poller = usePoller();
  const start = useStartPoller();
  const stop = useStopPoller();
  const state = poller.data;
  const isActive = state?.state === "running";
  return (
    <Card
      title="Poller"
      aside={
        isActive ? (
          <Button icon="stop" busy={stop.isPending} onClick={() => stop.mutate(undefined, { onError: toastError })}>
            Stop the poller
          </Button>
        ) : (
          <Button icon="play" busy={start.isPending} forbidden={repo === "" ? "choose a repository first" : undefined} onClick={() => start.mutate(repo, { onError: toastError })}>
            Start the poller
          </Button>
        )
      }
    >
      {poller.isError && <ErrorBox error={poller.error} />}
      <p className="muted">
        {isActive ? `It works on the ready issues of ${state?.repository ?? "the repository"}.` : "It works on every issue with the labels of a ready specification."}
      </p>
    </Card>
  );
}

import { useState } from "react";
import { useAudit, useEvidence } from "../../api/queries";
import type { Evidence as EvidenceData, Run } from "../../api/types";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { dateTime, duration, shortCommit } from "../../ui/format";
import { Icon } from "../../ui/icon";
import { Badge } from "../../ui/status";

type Check = EvidenceData["verdicts"][number]["checks"][number];

/** Why a result can be believed: the checks in clean rooms, and what could have influenced them. */
export default function Evidence({ run }: { run: Run }) {
  const query = useEvidence(run.id);
  if (query.isError) return <ErrorBox error={query.error} retry={() => void query.refetch()} />;
  if (query.isPending) return <p className="muted">Loading the evidence …</p>;
  const { verdicts, baseline, refusals, changed_files } = query.data;
  return (
    <div className="stack loose">
      {verdicts.length === 0 && (
        <Card title="Clean room">
          <Empty icon="shield" title="No commit was verified yet.">
            <p>A clean room is a fresh sandbox with a clean checkout. Every check of the task runs there before the run can succeed.</p>
          </Empty>
        </Card>
      )}
      {[...verdicts].reverse().map((verdict) => (
        <Card
          key={`${verdict.commit} ${verdict.at}`}
          title={`Clean room, ${shortCommit(verdict.commit)}`}
          aside={<Badge tone={verdict.green ? "good" : "bad"} icon={verdict.green ? "shield" : "shieldAlert"} text={verdict.green ? "green" : "red"} />}
        >
          <div className="stack">
            <p className="small muted">{dateTime(verdict.at)}</p>
            <Checks checks={verdict.checks} />
            <Texts title="Reasons" texts={verdict.reasons} />
            <Texts title="Findings" texts={verdict.findings.map((finding) => finding.text)} />
          </div>
        </Card>
      ))}
      {refusals.length > 0 && (
        <Card title="Refused claims of success">
          <Texts texts={refusals} />
        </Card>
      )}
      {baseline && (
        <Card title={`Base commit, ${shortCommit(baseline.commit)}`}>
          <div className="stack">
            <p className="small muted">The same checks before any work{baseline.cached ? ", from an earlier run" : ""}.</p>
            <Checks checks={baseline.checks} />
          </div>
        </Card>
      )}
      <Card title="Changed files that a reviewer should check">
        <div className="stack">
          <Surface title="They influence the checks" findings={changed_files.verification} />
          <Surface title="They execute on a developer's machine" findings={changed_files.executes_for_developers} />
          <Surface title="Workflows" findings={changed_files.workflows} />
          <Texts title="Removed tests" texts={changed_files.deleted_tests} />
          {isClean(changed_files) && <p className="muted">None.</p>}
        </div>
      </Card>
      <AuditCard run={run} />
    </div>
  );
}

function Checks({ checks }: { checks: Check[] }) {
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label="Checks">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Check</th>
            <th scope="col">Command</th>
            <th scope="col">Exit code</th>
            <th scope="col">Tests</th>
            <th scope="col">Duration</th>
          </tr>
        </thead>
        <tbody>
          {checks.map((check) => (
            <tr key={check.name}>
              <th scope="row">
                <span className="row">
                  <Icon name={check.green ? "success" : "failure"} />
                  <span className="visually-hidden">{check.green ? "green" : "red"}</span>
                  <span className="raw">{check.name}</span>
                </span>
              </th>
              <td className="code raw">{check.command}</td>
              <td className="number">{check.exit_code}</td>
              <td className="number">
                {check.tests ? `${check.tests.passed} passed, ${check.tests.failed} failed, ${check.tests.skipped} skipped` : "not counted"}
              </td>
              <td className="number">{duration(check.duration_ms / 1000)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Texts({ title, texts }: { title?: string; texts: string[] }) {
  if (texts.length === 0) return null;
  return (
    <div className="stack tight">
      {title && <h3>{title}</h3>}
      <ul className="stack tight">
        {texts.map((text, index) => (
          <li key={index} className="raw">
            {text}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Surface({ title, findings }: { title: string; findings: EvidenceData["changed_files"]["verification"] }) {
  return <Texts title={title} texts={findings.map((finding) => `${finding.path}: ${finding.why}`)} />;
}

function isClean(files: EvidenceData["changed_files"]): boolean {
  return (
    files.verification.length === 0 && files.executes_for_developers.length === 0 && files.workflows.length === 0 && files.deleted_tests.length === 0
  );
}

function AuditCard({ run }: { run: Run }) {
  const [wanted, setWanted] = useState(false);
  const audit = useAudit(run.id, wanted);
  return (
    <Card
      title="Audit"
      aside={
        <Button icon="shield" busy={audit.isFetching} onClick={() => (wanted ? void audit.refetch() : setWanted(true))}>
          Check the files of the run
        </Button>
      }
    >
      <div className="stack">
        <p className="small muted">An independent program checks every promise from the files and git alone.</p>
        {audit.isError && <ErrorBox error={audit.error} />}
        {audit.data && (
          <>
            <p>
              <Badge tone={audit.data.green ? "good" : "bad"} text={audit.data.green ? "no promise was broken" : "a promise was broken"} />
            </p>
            <ul className="stack tight">
              {audit.data.checks.map((check) => (
                <li key={check.id} className="stack tight">
                  <span className="row">
                    <Icon name={check.findings.length > 0 ? "failure" : "success"} />
                    <span className="code">{check.id}</span> {check.title}
                    <span className="small muted">{check.status.replaceAll("_", " ")}</span>
                  </span>
                  <Texts texts={check.findings} />
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </Card>
  );
}

import { useDebugCommands, useDiagnostics } from "../../api/queries";
import { useApplyDiagnosis, useDebug, useDiagnose } from "../../api/steering";
import type { components } from "../../api/schema";
import type { Run } from "../../api/types";
import { toast, toastError } from "../../shell/toast";
import { visible, withoutColours } from "../../ui/visible";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { Forbidden, forbidden } from "./forbidden";

type Schemas = components["schemas"];

/** The doctor's report about a run that does not progress, and the commands for a closer look. */
export default function Diagnostics({ run }: { run: Run }) {
  const query = useDiagnostics(run.id);
  const diagnose = useDiagnose(run.id);
  const apply = useApplyDiagnosis(run.id);
  const sent = { onError: toastError, onSuccess: (done: { effect: string }) => toast(done.effect, "good") };
  const report = query.data?.report;
  return (
    <div className="stack loose">
      <Card
        title="Doctor"
        aside={
          <>
            <Button icon="doctor" busy={diagnose.isPending || query.data?.in_progress} forbidden={forbidden(run, "diagnose")} onClick={() => diagnose.mutate(undefined, sent)}>
              Ask the doctor
            </Button>
            <Button
              kind="primary"
              icon="check"
              busy={apply.isPending}
              forbidden={report ? forbidden(run, "apply") : "there is no report to apply"}
              onClick={() => apply.mutate(undefined, sent)}
            >
              Apply the report
            </Button>
          </>
        }
      >
        {query.isError && <ErrorBox error={query.error} />}
        {query.data?.in_progress && <p className="notice">The doctor reads the run.</p>}
        {report && <Report report={report} />}
        {query.data?.text ? (
          <details open={!report}>
            <summary className="small">All reports</summary>
            <pre className="output" tabIndex={0}>
              {query.data.text}
            </pre>
          </details>
        ) : (
          <Empty icon="doctor" title="The doctor was not asked.">
            <p>It reads the last iterations and proposes guardrails, edits of the task or another model.</p>
          </Empty>
        )}
      </Card>
      <Debug run={run} />
    </div>
  );
}

/** The last report, which waits for the user. */
function Report({ report }: { report: Schemas["DoctorReport"] }) {
  return (
    <div className="stack">
      <p className="raw">
        <strong>{report.summary}</strong>
      </p>
      <Lines title="What it sees" lines={report.patterns} />
      <Lines title="Likely causes" lines={report.root_causes} />
      <Lines title="Guardrails to add" lines={report.guardrails.map((one) => `${one.name}: ${one.trigger} → ${one.instruction}`)} />
      {report.spec_edits.map((edit, index) => (
        <div key={index} className="stack tight">
          <h3>Change of the task{edit.why && `: ${edit.why}`}</h3>
          {edit.find && <pre className="output removed-text">{edit.find}</pre>}
          <pre className="output added-text">{edit.replace}</pre>
        </div>
      ))}
      {report.model_profile && <p className="raw">It suggests the model profile {report.model_profile}.</p>}
    </div>
  );
}

function Lines({ title, lines }: { title: string; lines: string[] }) {
  if (lines.length === 0) return null;
  return (
    <div className="stack tight">
      <h3>{title}</h3>
      <ul className="bullets">
        {lines.map((line, index) => (
          <li key={index} className="raw">
            {line}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Debug({ run }: { run: Run }) {
  const commands = useDebugCommands(run.id);
  const debug = useDebug(run.id);
  const why = forbidden(run, "debug");
  return (
    <Card title="Debug commands">
      <div className="stack">
        <p className="small muted">Checks and logs of the task, started by their ids in the sandbox.</p>
        <Forbidden run={run} command="debug" />
        <ul className="stack tight">
          {commands.data?.commands.map((command) => (
            <li key={command.id} className="row wrap">
              <Button icon="play" busy={debug.isPending} forbidden={why} onClick={() => debug.mutate(command.id, { onError: toastError })}>
                {command.id}
              </Button>
              {command.command && <span className="code small muted raw">{command.command}</span>}
            </li>
          ))}
        </ul>
        {debug.data && (
          <div className="stack tight">
            <p className={debug.data.done && !debug.data.succeeded ? "notice bad" : "notice"}>{debug.data.detail}</p>
            {debug.data.output && (
              <pre className="output" tabIndex={0}>
                {visible(withoutColours(debug.data.output))}
              </pre>
            )}
          </div>
        )}
      </div>
    </Card>
  );
}

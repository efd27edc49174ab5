import { useDebugCommands, useDiagnostics } from "../../api/queries";
import { useApplyDiagnosis, useDebug, useDiagnose } from "../../api/steering";
import type { Run } from "../../api/types";
import { toast, toastError } from "../../shell/toast";
import { visible, withoutColours } from "../../log/pieces";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { forbidden } from "./forbidden";

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
        {query.data?.text ? (
          <pre className="output">{visible(query.data.text)}</pre>
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

function Debug({ run }: { run: Run }) {
  const commands = useDebugCommands(run.id);
  const debug = useDebug(run.id);
  const why = forbidden(run, "debug");
  return (
    <Card title="Debug commands">
      <div className="stack">
        <p className="small muted">Commands of the task, started by their ids in the sandbox. {why}</p>
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
            {debug.data.output && <pre className="output">{visible(withoutColours(debug.data.output))}</pre>}
          </div>
        )}
      </div>
    </Card>
  );
}

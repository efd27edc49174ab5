import { lazy, Suspense, useEffect, useState } from "react";
import { useTask } from "../../api/queries";
import { lintTask, useChangeTask } from "../../api/steering";
import { RequestFailed } from "../../api/problem";
import type { Run } from "../../api/types";
import { toast } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { plural } from "../../ui/format";
import { forbidden } from "./forbidden";

const TaskEditor = lazy(() => import("../../editor/task-editor"));

/** The task in force. A changed task is in force from the next iteration. */
export default function Task({ run }: { run: Run }) {
  const query = useTask(run.id);
  const change = useChangeTask(run.id);
  const [text, setText] = useState<string | null>(null);
  const [version, setVersion] = useState("");
  const [errors, setErrors] = useState(0);
  const loaded = query.data;
  const isEdited = loaded !== undefined && text !== null && text !== loaded.text;
  // A new text of the server replaces the shown one, but never the user's edit.
  useEffect(() => {
    if (loaded && !isEdited) {
      setText(loaded.text);
      setVersion(loaded.version);
    }
  }, [loaded, isEdited]);
  if (query.isError) return <ErrorBox error={query.error} retry={() => void query.refetch()} />;
  if (!loaded || text === null) return <p className="muted">Loading the task …</p>;
  const why = forbidden(run, "task");
  const isStale = change.error instanceof RequestFailed && change.error.problem.status === 412;
  const save = () =>
    change.mutate(
      { text, version },
      {
        onSuccess: (done) => {
          toast(done.effect, "good");
          setText(null);
          void query.refetch();
        },
      },
    );
  return (
    <Card
      title="Task in force"
      aside={
        <>
          {loaded.change_pending && <span className="small muted">A changed task waits for the next iteration.</span>}
          <Button
            forbidden={isEdited ? undefined : "nothing was changed"}
            onClick={() => {
              setText(loaded.text);
              setVersion(loaded.version);
            }}
          >
            Revert
          </Button>
          <Button kind="primary" busy={change.isPending} forbidden={why ?? (!isEdited ? "nothing was changed" : errors > 0 ? "correct the errors of the linter first" : undefined)} onClick={save}>
            Put in force
          </Button>
        </>
      }
    >
      <div className="stack">
        {isStale && (
          <div className="notice warn row wrap">
            <span className="grow">The task was changed elsewhere. Your text is still here.</span>
            <Button onClick={() => void query.refetch().then(({ data }) => data && setVersion(data.version))}>Keep my text</Button>
          </div>
        )}
        {change.isError && !isStale && <ErrorBox error={change.error} />}
        <Suspense fallback={<p className="muted">Loading the editor …</p>}>
          <TaskEditor label="Task" value={text} onChange={setText} findings={lintTask} onErrors={setErrors} readOnly={why !== undefined} />
        </Suspense>
        {isEdited && errors > 0 && <p className="notice bad" role="status">{`The linter found ${plural(errors, "error")}.`}</p>}
        {why && <p className="small muted">{`The task cannot be changed: ${why}.`}</p>}
      </div>
    </Card>
  );
}

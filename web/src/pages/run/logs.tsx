import { useCallback, useState } from "react";
import { readLog, useLogSize, type LogName } from "../../api/logs";
import type { Run } from "../../api/types";
import { LogView } from "../../log/log-view";
import { Button } from "../../ui/button";
import { ErrorBox } from "../../ui/error-box";
import { LogSearch } from "../../log/log-search";

const logs = [
  { name: "activity", text: "Activity" },
  { name: "errors", text: "Errors" },
  { name: "output", text: "Output" },
] as const;

/** The logs of a run, also those of 100 MB: the page reads the visible part. */
export default function Logs({ run }: { run: Run }) {
  const [name, setName] = useState<LogName>("activity");
  const [target, setTarget] = useState<number>();
  const size = useLogSize(run.id, name);
  const read = useCallback((from: number, limit: number, signal: AbortSignal) => readLog(run.id, name, from, limit, signal), [run.id, name]);
  return (
    <div className="stack">
      <div className="row wrap spread">
        <div className="row" role="group" aria-label="Log">
          {logs.map((log) => (
            <Button
              key={log.name}
              kind="quiet"
              aria-pressed={name === log.name}
              onClick={() => {
                setName(log.name);
                setTarget(undefined);
              }}
            >
              {log.text}
            </Button>
          ))}
        </div>
        <LogSearch key={name} read={read} size={size.data ?? 0} onFound={setTarget} />
      </div>
      {size.isError && <ErrorBox error={size.error} retry={() => void size.refetch()} />}
      <LogView key={name} label={`${name} log`} read={read} size={size.data ?? 0} target={target} />
    </div>
  );
}

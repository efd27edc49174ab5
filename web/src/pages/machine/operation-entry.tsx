import { useCancelOperation } from "../../api/machine";
import type { components } from "../../api/schema";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { Badge } from "../../ui/status";

type Operation = components["schemas"]["Operation"];

const states = {
  running: { tone: "busy", icon: "working" },
  succeeded: { tone: "good", icon: "success" },
  failed: { tone: "bad", icon: "failure" },
  cancelled: { tone: "calm", icon: "stop" },
} as const;

const checkIcons = { pass: "success", fail: "failure", not_run: "pending" } as const;

/** An operation of the server with its checks, its problem, and its progress while it runs. */
export function OperationEntry({ operation }: { operation: Operation }) {
  const cancel = useCancelOperation();
  return (
    <li className="stack tight">
      <span className="row wrap">
        <Badge {...states[operation.state]} text={operation.state} />
        <strong>{operation.kind.replaceAll("_", " ")}</strong>
        {operation.state === "running" && (
          <Button kind="quiet" icon="stop" busy={cancel.isPending} onClick={() => cancel.mutate(operation.id, { onError: toastError })}>
            Cancel
          </Button>
        )}
      </span>
      {operation.problem && (
        <p className="notice bad raw">
          {operation.problem.what} — {operation.problem.why} — {operation.problem.fix}
        </p>
      )}
      <ul className="stack tight small">
        {operation.checks.map((check) => (
          <li key={check.name} className="row wrap">
            <Icon name={checkIcons[check.status]} size={14} />
            <span className="visually-hidden">{check.status.replaceAll("_", " ")}</span>
            <span>{check.name}</span>
            <span className="muted raw">{check.detail}</span>
            {check.problems.map((problem) => (
              <span key={problem.what} className="raw">
                {problem.what} — {problem.fix}
              </span>
            ))}
          </li>
        ))}
      </ul>
      {operation.log.length > 0 && operation.state === "running" && <pre className="output">{operation.log.join("\n")}</pre>}
    </li>
  );
}

import { useImages, useOperations, useSelftest } from "../../api/machine";
import type { components } from "../../api/schema";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { bytes } from "../../ui/format";
import { Icon } from "../../ui/icon";
import { Badge } from "../../ui/status";

type Operation = components["schemas"]["Operation"];

const providers = [
  { provider: "docker", text: "A container without a network interface and without credentials" },
  { provider: "local", text: "Processes on this machine, without isolation" },
] as const;

/** Sandbox providers with a test of each, and the images of containers. */
export function Providers() {
  const selftest = useSelftest();
  const operations = useOperations();
  return (
    <div className="stack loose">
      <Card title="Sandbox providers">
        <ul className="stack">
          {providers.map(({ provider, text }) => (
            <li key={provider} className="row wrap spread">
              <span>
                <strong>{provider}</strong> <span className="muted">{text}</span>
              </span>
              <Button icon="play" busy={selftest.isPending} onClick={() => selftest.mutate(provider, { onError: toastError })}>
                Test it
              </Button>
            </li>
          ))}
        </ul>
      </Card>
      {operations.data && operations.data.operations.length > 0 && (
        <Card title="Operations">
          <ul className="stack">
            {operations.data.operations.map((operation) => (
              <OperationEntry key={operation.id} operation={operation} />
            ))}
          </ul>
        </Card>
      )}
      <Images />
    </div>
  );
}

const states = {
  running: { tone: "busy", icon: "working" },
  succeeded: { tone: "good", icon: "success" },
  failed: { tone: "bad", icon: "failure" },
  cancelled: { tone: "calm", icon: "stop" },
} as const;

const checkIcons = { pass: "success", fail: "failure", not_run: "pending" } as const;

function OperationEntry({ operation }: { operation: Operation }) {
  return (
    <li className="stack tight">
      <span className="row wrap">
        <Badge {...states[operation.state]} text={operation.state} />
        <strong>{operation.kind.replaceAll("_", " ")}</strong>
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

function Images() {
  const query = useImages();
  const images = query.data ? [query.data] : [];
  return (
    <Card title="Images">
      {query.isError && <ErrorBox error={query.error} />}
      {query.isSuccess && images.length === 0 && <Empty icon="disk" title="No image is configured." />}
      <ul className="stack">
        {images.map((image) => (
          <li key={image.image} className="stack tight">
            <span className="row wrap">
              <Badge tone={image.status === "present" ? "good" : image.status === "missing" ? "warn" : "calm"} text={image.status} />
              <span className="code raw">{image.image}</span>
              {image.size_bytes !== null && image.size_bytes !== undefined && <span className="small muted">{bytes(image.size_bytes)}</span>}
            </span>
            {image.problem && (
              <span className="small muted raw">
                {image.problem.what} — {image.problem.fix}
              </span>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}

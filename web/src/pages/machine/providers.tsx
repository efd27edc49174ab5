import { useBuildImage, useImages, useOperations, usePullImage, useSelftest } from "../../api/machine";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { bytes } from "../../ui/format";
import { Badge } from "../../ui/status";
import { OperationEntry } from "./operation-entry";

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

function Images() {
  const query = useImages();
  const images = query.data ? [query.data] : [];
  const build = useBuildImage();
  const pull = usePullImage();
  return (
    <Card
      title="Images"
      aside={
        <>
          <Button busy={build.isPending} onClick={() => build.mutate(undefined, { onError: toastError })}>
            Build
          </Button>
          <Button icon="download" busy={pull.isPending} onClick={() => pull.mutate(undefined, { onError: toastError })}>
            Pull
          </Button>
        </>
      }
    >
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

import { usePreflight, useOperations } from "../../api/machine";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { OperationEntry } from "../machine/operation-entry";
import type { Choice } from "./choice";

/** Checks everything that a run of a task file needs, before it starts: tools, credentials, the sandbox, the model. */
export function Preflight({ choice, forbidden }: { choice: Choice; forbidden: string | undefined }) {
  const preflight = usePreflight();
  const operations = useOperations();
  const shown = operations.data?.operations.find((operation) => operation.id === preflight.data?.id) ?? preflight.data;
  const begin = () =>
    preflight.mutate(
      {
        directory: choice.repo.startsWith("/") ? choice.repo.trim() : undefined,
        file: choice.file || undefined,
        model: choice.model || undefined,
        sandbox: choice.sandbox || undefined,
      },
      { onError: toastError, onSuccess: () => void operations.refetch() },
    );
  return (
    <Card
      title="Preflight"
      aside={
        <Button icon="shield" busy={preflight.isPending || shown?.state === "running"} forbidden={forbidden} onClick={begin}>
          Check the machine
        </Button>
      }
    >
      {shown ? <ul><OperationEntry operation={shown} /></ul> : <p className="muted">Checks tools, credentials, the sandbox and the model before the run starts.</p>}
    </Card>
  );
}

import { useState } from "react";
import { useAdopt, useInspectOrphan, useRemoveOrphan } from "../../api/machine";
import type { components } from "../../api/schema";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { ErrorBox } from "../../ui/error-box";

type Orphan = components["schemas"]["OrphanEntry"];

/** A run whose directory is gone: adopt it after a look at its contract, or remove its sandbox. */
export function Adoption({ orphan }: { orphan: Orphan }) {
  const inspect = useInspectOrphan(orphan.run);
  const adopt = useAdopt(orphan.run);
  const remove = useRemoveOrphan(orphan.run);
  const [open, setOpen] = useState<"adopt" | "remove" | null>(null);
  const preview = inspect.data;
  return (
    <div className="row wrap spread">
      <span className="grow raw">
        <strong>{orphan.task_id ?? orphan.run}</strong> <span className="muted">{orphan.description}</span>
      </span>
      <span className="row">
        <Button busy={inspect.isPending} onClick={() => inspect.mutate(undefined, { onSuccess: () => setOpen("adopt"), onError: toastError })}>
          Look at it
        </Button>
        <Button kind="danger" onClick={() => setOpen("remove")} forbidden={orphan.sandbox ? undefined : "it has no sandbox"}>
          Remove
        </Button>
      </span>
      {open === "adopt" && preview && (
        <Dialog open wide onClose={() => setOpen(null)} title={`Adopt ${preview.title}?`} description="The run is rebuilt from this copy. What it claims is verified again.">
          {preview.unapproved.length > 0 && (
            <div className="notice warn stack tight">
              {preview.unapproved.map((text) => (
                <span key={text} className="raw">
                  {text}
                </span>
              ))}
            </div>
          )}
          <pre className="output">{preview.contract}</pre>
          {adopt.isError && <ErrorBox error={adopt.error} />}
          <div className="dialog-actions">
            <Button onClick={() => setOpen(null)}>Cancel</Button>
            <Button kind="primary" busy={adopt.isPending} onClick={() => adopt.mutate(preview.confirmation, { onSuccess: () => setOpen(null) })}>
              Adopt the run
            </Button>
          </div>
        </Dialog>
      )}
      {open === "remove" && (
        <Dialog open onClose={() => setOpen(null)} title="Remove the sandbox?" description="It may contain the last copy of the work. This cannot be undone.">
          {remove.isError && <ErrorBox error={remove.error} />}
          <div className="dialog-actions">
            <Button onClick={() => setOpen(null)}>Cancel</Button>
            <Button kind="danger" busy={remove.isPending} onClick={() => remove.mutate(undefined, { onSuccess: () => setOpen(null) })}>
              Remove
            </Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

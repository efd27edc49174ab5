import { useState } from "react";
import { useDiscard, useMerge } from "../../api/steering";
import type { Run } from "../../api/types";
import { toast } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { ErrorBox } from "../../ui/error-box";

const final = new Set(["succeeded", "failed", "stopped"]);

/** Merging or discarding the branch of a run that has ended. */
export function Delivery({ run }: { run: Run }) {
  const [open, setOpen] = useState<"merge" | "discard" | null>(null);
  const isLocal = !/^https?:/i.test(run.repo);
  const isVerified = run.verified?.green === true;
  const ended = final.has(run.status) ? undefined : "the run has not ended";
  const decided = run.pr?.state === "merged" || run.pr?.state === "closed" ? `the pull request is ${run.pr.state}` : undefined;
  const why = ended ?? decided;
  return (
    <>
      <div className="row wrap">
        <Button
          icon="merge"
          kind={isVerified && why === undefined ? "primary" : "plain"}
          forbidden={why ?? (isLocal ? undefined : "merge the pull request at its host")}
          onClick={() => setOpen("merge")}
        >
          Merge
        </Button>
        <Button icon="trash" forbidden={why} onClick={() => setOpen("discard")}>
          Discard
        </Button>
      </div>
      {open === "merge" && <MergeDialog run={run} isVerified={isVerified} onClose={() => setOpen(null)} />}
      {open === "discard" && <DiscardDialog run={run} onClose={() => setOpen(null)} />}
    </>
  );
}

function MergeDialog({ run, isVerified, onClose }: { run: Run; isVerified: boolean; onClose: () => void }) {
  const merge = useMerge(run.id);
  const done = () => {
    toast(`${run.branch} is merged into ${run.base_branch}`, "good");
    onClose();
  };
  return (
    <Dialog open onClose={onClose} title={`Merge into ${run.base_branch}?`} description="Your uncommitted changes are never touched.">
      {!isVerified && <p className="notice warn">No clean room has verified these commits.</p>}
      {merge.isError && <ErrorBox error={merge.error} />}
      <div className="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind={isVerified ? "primary" : "danger"} busy={merge.isPending} onClick={() => merge.mutate(!isVerified, { onSuccess: done })}>
          {isVerified ? "Merge" : "Merge without verification"}
        </Button>
      </div>
    </Dialog>
  );
}

function DiscardDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const discard = useDiscard(run.id);
  return (
    <Dialog open onClose={onClose} title="Discard the result?" description="The branch and the sandbox are removed. The journal and the evidence stay.">
      {discard.isError && <ErrorBox error={discard.error} />}
      <div className="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" busy={discard.isPending} onClick={() => discard.mutate(undefined, { onSuccess: onClose })}>
          Discard
        </Button>
      </div>
    </Dialog>
  );
}

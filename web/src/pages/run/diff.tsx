import { lazy, Suspense, useState } from "react";
import { useDiff } from "../../api/queries";
import type { Run } from "../../api/types";
import { Button } from "../../ui/button";
import { ErrorBox } from "../../ui/error-box";

const DiffView = lazy(() => import("../../diff/diff-view"));

const ranges = [
  { of: "base", text: "Committed, against the base" },
  { of: "workspace", text: "All, against the base" },
  { of: "uncommitted", text: "Not committed" },
] as const;

/** The changes of the run. */
export default function Diff({ run }: { run: Run }) {
  const [of, setOf] = useState<(typeof ranges)[number]["of"]>("base");
  const diff = useDiff(run.id, { of });
  return (
    <div className="stack">
      <div className="row wrap" role="group" aria-label="Compared states">
        {ranges.map((range) => (
          <Button key={range.of} kind="quiet" aria-pressed={of === range.of} onClick={() => setOf(range.of)}>
            {range.text}
          </Button>
        ))}
        <Button icon="refresh" kind="quiet" busy={diff.isFetching} onClick={() => void diff.refetch()} aria-label="Load again" />
      </div>
      {diff.isError && <ErrorBox error={diff.error} retry={() => void diff.refetch()} />}
      {diff.isPending && <p className="muted">Loading the diff …</p>}
      {diff.data && (
        <Suspense fallback={<p className="muted">Loading …</p>}>
          <DiffView text={diff.data.patch} cut={diff.data.cut} />
        </Suspense>
      )}
    </div>
  );
}

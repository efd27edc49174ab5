import { useState } from "react";
import { useContinue } from "../../api/steering";
import type { Run } from "../../api/types";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { ErrorBox } from "../../ui/error-box";
import { TextField } from "../../ui/field";
import { count, duration, usd } from "../../ui/format";

/** Raises budgets; a run that waits or failed on a budget then continues. */
export function ContinueDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const proceed = useContinue(run.id);
  const { iterations, cost_usd, wall_time_seconds, tokens } = run.budgets;
  const [values, setValues] = useState({
    iterations: text(iterations.limit),
    cost: text(cost_usd.limit),
    minutes: text(wall_time_seconds.limit === null || wall_time_seconds.limit === undefined ? null : Math.round(wall_time_seconds.limit / 60)),
    tokens: text(tokens.limit),
  });
  const set = (name: keyof typeof values) => (event: { target: { value: string } }) => setValues({ ...values, [name]: event.target.value });
  const submit = () =>
    proceed.mutate(
      {
        max_iterations: changed(values.iterations, iterations.limit),
        max_cost_usd: changed(values.cost, cost_usd.limit),
        max_wall_time_minutes: changed(values.minutes, wall_time_seconds.limit ? Math.round(wall_time_seconds.limit / 60) : null),
        max_tokens: changed(values.tokens, tokens.limit),
      },
      { onSuccess: onClose },
    );
  return (
    <Dialog open onClose={onClose} title="Raise budgets and continue" description="The run continues on the same branch, in the same sandbox if it exists.">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <TextField label="Iterations" type="number" min={1} hint={`${iterations.used} used`} value={values.iterations} onChange={set("iterations")} />
        <TextField label="Cost in US dollars" type="number" min={0} step="any" hint={`${usd(cost_usd.used)} used`} value={values.cost} onChange={set("cost")} />
        <TextField label="Active time in minutes" type="number" min={1} hint={`${duration(wall_time_seconds.used)} used`} value={values.minutes} onChange={set("minutes")} />
        <TextField label="Tokens" type="number" min={1} hint={`${count(tokens.used)} used`} value={values.tokens} onChange={set("tokens")} />
        {proceed.isError && <ErrorBox error={proceed.error} />}
        <div className="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" busy={proceed.isPending}>
            Continue the run
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function text(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}

/** A budget is sent only if it was changed. */
function changed(value: string, before: number | null | undefined): number | undefined {
  const number = value.trim() === "" ? undefined : Number(value);
  return number === undefined || Number.isNaN(number) || number === before ? undefined : number;
}

import { Icon } from "../../ui/icon";
import type { Run } from "../../api/types";

/** Why a run does not accept a command now; undefined if it does. */
export function forbidden(run: Run, command: string): string | undefined {
  const found = run.commands.find((one) => one.command === command);
  if (found === undefined) return "this server does not know the command";
  return found.allowed ? undefined : (found.reason ?? "the run does not accept it now");
}

/** The reason, as text beside a form. */
export function Forbidden({ run, command }: { run: Run; command: string }) {
  const why = forbidden(run, command);
  if (why === undefined) return null;
  return (
    <p className="small muted row">
      <Icon name="ban" size={14} />
      <span className="raw">Not possible now: {why}</span>
    </p>
  );
}

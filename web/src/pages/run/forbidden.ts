import type { Run } from "../../api/types";

/** Why a run does not accept a command now; undefined if it does. */
export function forbidden(run: Run, command: string): string | undefined {
  const found = run.commands.find((one) => one.command === command);
  if (found === undefined) return "this server does not know the command";
  return found.allowed ? undefined : (found.reason ?? "the run does not accept it now");
}

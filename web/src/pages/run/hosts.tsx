import { useAllowHost } from "../../api/steering";
import type { Run } from "../../api/types";
import { toast, toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { forbidden } from "./forbidden";

type Host = { host: string; why?: string };

/** Hosts that a run cannot reach, with the buttons that allow them. */
export function Hosts({ run, hosts }: { run: Run; hosts: Host[] }) {
  const allow = useAllowHost(run.id);
  // A run that has ended reaches no host; the project's later runs do.
  const whyNotRun = forbidden(run, "allow");
  const send = (host: string, scope: "run" | "project") =>
    allow.mutate({ host, scope }, { onError: toastError, onSuccess: () => toast(`${host} is allowed`, "good") });
  return (
    <ul className="stack tight">
      {hosts.map(({ host, why }) => (
        <li key={host} className="row wrap spread">
          <span className="stack tight">
            <span className="code raw">{host}</span>
            {why && <span className="small muted raw">{why}</span>}
          </span>
          <span className="row wrap">
            <Button busy={allow.isPending} forbidden={whyNotRun} onClick={() => send(host, "run")}>
              Allow for this run
            </Button>
            <Button busy={allow.isPending} onClick={() => send(host, "project")}>
              Allow for the project
            </Button>
          </span>
        </li>
      ))}
    </ul>
  );
}

import { RequestFailed } from "../api/problem";
import { Button } from "./button";
import { Icon } from "./icon";

/** Why a part of the page has no data, and what to do. */
export function ErrorBox({ error, retry }: { error: unknown; retry?: () => void }) {
  const problem = error instanceof RequestFailed ? error.problem : undefined;
  return (
    <div className="notice bad row top" role="alert">
      <Icon name="alert" />
      <span className="raw grow">
        {problem?.detail ?? (error instanceof Error ? error.message : String(error))}
        {problem?.hint && <span className="muted"> — {problem.hint}</span>}
      </span>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

import { useStreamState } from "../api/live";
import { Badge } from "../ui/status";

/** Whether the page is up to date. */
export function LiveBadge() {
  const state = useStreamState();
  return (
    <span className="grow" role="status">
      {state === "open" && <Badge tone="good" icon="activity" text="live" title="The page shows every event as it happens." />}
      {(state === "connecting" || state === "lost") && (
        <Badge tone="warn" icon="working" text="reconnecting" title="The server does not respond. The page continues at the same place when it does." />
      )}
      {(state === "signed-out" || state === "gone") && <Badge tone="bad" icon="alert" text="signed out" title="Open a new login link of the server." />}
    </span>
  );
}

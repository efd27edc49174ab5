import { Icon, type IconName } from "./icon";
import "./status.css";

export type Tone = "good" | "bad" | "warn" | "busy" | "calm";

/** How a status of a run is shown: always a word and an icon, never a colour alone. */
const statuses: Record<string, { words: string; tone: Tone; icon: IconName }> = {
  created: { words: "created", tone: "calm", icon: "pending" },
  queued: { words: "queued", tone: "calm", icon: "clock" },
  preparing: { words: "preparing", tone: "busy", icon: "working" },
  running: { words: "running", tone: "busy", icon: "working" },
  verifying: { words: "verifying", tone: "busy", icon: "shield" },
  paused: { words: "paused", tone: "warn", icon: "pause" },
  waiting_quota: { words: "waiting for a usage limit", tone: "warn", icon: "clock" },
  waiting_provider: { words: "waiting for the provider", tone: "warn", icon: "clock" },
  waiting_ci: { words: "waiting for checks", tone: "busy", icon: "clock" },
  waiting_host: { words: "waiting for the source host", tone: "warn", icon: "clock" },
  succeeded: { words: "succeeded", tone: "good", icon: "success" },
  failed: { words: "failed", tone: "bad", icon: "failure" },
  stopped: { words: "stopped", tone: "calm", icon: "stop" },
  sandbox_lost: { words: "sandbox lost", tone: "bad", icon: "alert" },
  orphaned: { words: "orphaned", tone: "warn", icon: "alert" },
  damaged: { words: "damaged", tone: "bad", icon: "alert" },
  needs_upgrade: { words: "needs a newer ralph", tone: "warn", icon: "alert" },
};

export function statusWords(status: string): string {
  return statuses[status]?.words ?? status.replaceAll("_", " ");
}

export function StatusBadge({ status }: { status: string }) {
  const shown = statuses[status] ?? { words: statusWords(status), tone: "calm" as const, icon: "pending" as const };
  return <Badge tone={shown.tone} icon={shown.icon} text={shown.words} />;
}

export function Badge({ tone = "calm", icon, text, title }: { tone?: Tone; icon?: IconName; text: string; title?: string }) {
  return (
    <span className={`badge ${tone}`} title={title}>
      {icon && <Icon name={icon} size={13} />}
      {text}
    </span>
  );
}

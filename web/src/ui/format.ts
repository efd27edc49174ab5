// Numbers and times as people read them. The same words as on the command line.

export function usd(value: number): string {
  if (value !== 0 && Math.abs(value) < 0.01) return `$${value.toFixed(4)}`;
  return `$${value.toFixed(2)}`;
}

export function count(value: number): string {
  if (value >= 1_000_000) return `${trim(value / 1_000_000)}M`;
  if (value >= 10_000) return `${trim(value / 1_000)}k`;
  return String(value);
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : trim(value)} ${units[unit]}`;
}

/** A duration in seconds, with its two largest units. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (seconds < 10 && seconds !== whole) return `${seconds.toFixed(1)} s`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return join(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 86_400) return join(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");
  return join(Math.floor(whole / 86_400), "d", Math.floor((whole % 86_400) / 3600), "h");
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`;
}

/** The time since `then`, in one unit. */
export function ago(then: string | number | Date, now: number): string {
  const seconds = Math.max(0, (now - new Date(then).getTime()) / 1000);
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

export function clockTime(at: string | number | Date): string {
  return new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

export function dateTime(at: string | number | Date): string {
  return new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

export function shortCommit(commit: string): string {
  return commit.slice(0, 10);
}

/** The last part of a repository's address or path. */
export function repoName(repo: string): string {
  const parts = repo.replace(/\/+$/, "").split("/");
  return parts.length > 2 && repo.includes("://") ? parts.slice(-2).join("/") : (parts.at(-1) ?? repo);
}

function trim(value: number): string {
  return value.toFixed(1).replace(/\.0$/, "");
}

function join(large: number, unit: string, small: number, smaller: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smaller}`;
}

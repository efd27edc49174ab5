import type { Frame } from "../api/stream";

/** What a frame tells the user; undefined if it needs nobody. */
export function notice(frame: Frame): string | undefined {
  const data = frame.data as { status?: { status?: string } | string; reason?: { kind?: string; question?: string }; host?: string } | undefined;
  if (frame.type === "egress_blocked" && data?.host) return `${data.host} was blocked`;
  if (frame.type !== "status_changed") return undefined;
  const status = typeof data?.status === "string" ? data.status : data?.status?.status;
  if (status === "paused") {
    if (data?.reason?.kind === "person" || data?.reason?.kind === "interrupted") return undefined;
    return data?.reason?.question ? `asks: ${data.reason.question}` : "is paused and needs you";
  }
  if (status === "failed") return "failed";
  if (status === "succeeded") return "succeeded";
  return undefined;
}

// Parts of log files, by their offsets in bytes.

import { useQuery } from "@tanstack/react-query";
import type { LogPart } from "../log/pieces";
import { api, body } from "./client";
import { keys } from "./queries";

export type LogName = "activity" | "errors" | "output";

const encoder = new TextEncoder();

/** Reads a part of a log. A response ends at a line, so a part may need several. */
export async function readLog(id: string, log: LogName, from: number, limit: number, signal?: AbortSignal): Promise<LogPart> {
  const parts: Uint8Array[] = [];
  let at = from;
  let size = 0;
  while (at < from + limit) {
    const query = { from: at, limit: Math.max(4, from + limit - at) };
    const part = await body(api.GET("/api/v1/runs/{id}/logs/{log}", { params: { path: { id, log }, query }, signal }));
    size = part.size;
    if (part.to <= at) break;
    parts.push(encoder.encode(part.text));
    at = part.to;
    if (at >= size) break;
  }
  return { from, to: at, size, bytes: join(parts) };
}

function join(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The size of a log; it grows with the events of the run. */
export function useLogSize(id: string, log: LogName) {
  return useQuery({
    queryKey: keys.part(id, "log", log),
    queryFn: async ({ signal }) => (await readLog(id, log, 0, 4, signal)).size,
    refetchInterval: 2_000,
  });
}

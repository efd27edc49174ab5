// The stream of all events: it keeps the queries of the pages up to date and reports runs that need the user.

import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { keys } from "./queries";
import { openStream, type Frame, type StreamState } from "./stream";

let state: StreamState = "connecting";
const stateListeners = new Set<() => void>();
const frameListeners = new Set<(frames: Frame[]) => void>();

export function useStreamState(): StreamState {
  return useSyncExternalStore(
    (listener) => {
      stateListeners.add(listener);
      return () => stateListeners.delete(listener);
    },
    () => state,
  );
}

/** Calls a function with each batch of frames of all runs, until the returned function is called. */
export function onFrames(listener: (frames: Frame[]) => void): () => void {
  frameListeners.add(listener);
  return () => frameListeners.delete(listener);
}

const ignored = new Set<string>();

/** Events of an ignored run refresh only the lists. */
export function ignoreRun(run: string, isIgnored: boolean): void {
  if (isIgnored) ignored.add(run);
  else ignored.delete(run);
}

/** The shortest time between two requests for the same data. */
const REFRESH_MS = 400;
/** The interval of requests while there is no stream. */
const FALLBACK_MS = 5_000;

/** Opens the stream of all events for the life of the page. */
export function startLive(client: QueryClient): () => void {
  let cursor = "";
  let interrupted = false;
  const changed = new Set<string>();
  let isListChanged = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let refreshed = 0;
  const refresh = () => {
    timer = undefined;
    refreshed = performance.now();
    void client.invalidateQueries({ queryKey: keys.runs() });
    for (const run of changed) void client.invalidateQueries({ queryKey: keys.run(run) });
    changed.clear();
    isListChanged = false;
  };
  // Without the stream the page still shows what happens, a little later.
  const fallback = setInterval(() => {
    if (state !== "open") void client.invalidateQueries();
  }, FALLBACK_MS);
  const close = openStream({
    address: () => `events${cursor === "" ? "" : `?cursor=${encodeURIComponent(cursor)}`}`,
    onState: (next) => {
      state = next;
      interrupted ||= next === "lost";
      for (const listener of stateListeners) listener();
      // The stream continues with the missed events; changes of the server itself are in the answers of new requests.
      if (next === "open" && interrupted) {
        interrupted = false;
        void client.invalidateQueries();
      }
    },
    onFrames: (frames) => {
      for (const frame of frames) {
        // Events before this frame may be missing in what was loaded.
        if (frame.type === "hello" && (frame.reset || cursor === "")) void client.invalidateQueries();
        if (frame.cursor) cursor = frame.cursor;
        isListChanged ||= frame.run !== undefined;
        if (frame.run && !ignored.has(frame.run)) changed.add(frame.run);
      }
      if (isListChanged) timer ??= setTimeout(refresh, Math.max(0, refreshed + REFRESH_MS - performance.now()));
      for (const listener of frameListeners) listener(frames);
    },
  });
  return () => {
    clearInterval(fallback);
    close();
  };
}

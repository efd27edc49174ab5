// Tells the user about runs that need a decision while another tab or program has the attention.

import type { QueryClient } from "@tanstack/react-query";
import { onFrames } from "../api/live";
import { keys } from "../api/queries";
import { notice } from "./notice";
import { toast } from "./toast";

const KEY = "ralph.notify";

export function wantsNotifications(): boolean {
  return localStorage.getItem(KEY) === "on" && "Notification" in window && Notification.permission === "granted";
}

/** Asks the browser for the permission. Returns whether notifications are on. */
export async function enableNotifications(): Promise<boolean> {
  if (!("Notification" in window)) return false;
  const permission = await Notification.requestPermission();
  localStorage.setItem(KEY, permission === "granted" ? "on" : "off");
  return permission === "granted";
}

export function disableNotifications(): void {
  localStorage.setItem(KEY, "off");
}

export function startNotifications(client: QueryClient): void {
  const opened = Date.now();
  onFrames((frames) => {
    for (const frame of frames) {
      const text = notice(frame);
      // After a reconnect the stream repeats what happened in between; older news are on the page.
      if (text === undefined || !frame.run || (frame.ts && new Date(frame.ts).getTime() < opened)) continue;
      const known = client.getQueryData<{ title?: string; task_id?: string }>(keys.run(frame.run));
      const name = known?.title || known?.task_id || frame.run;
      toast(`${name}: ${text}`, text === "failed" ? "bad" : text === "succeeded" ? "good" : "calm");
      if (document.hidden && wantsNotifications()) {
        const shown = new Notification(`ralph: ${name}`, { body: text.slice(0, 300), tag: frame.run });
        shown.onclick = () => {
          window.focus();
          shown.close();
        };
      }
    }
  });
}

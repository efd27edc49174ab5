import { useSyncExternalStore } from "react";
import { Button } from "../ui/button";
import { Icon } from "../ui/icon";
import { visible } from "../ui/visible";
import "./toast.css";

type Toast = { id: number; tone: "good" | "bad" | "calm"; text: string };

const MOST = 4;
const SHOWN_MS = 7_000;
let toasts: Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();

function change(update: (toasts: Toast[]) => Toast[]): void {
  toasts = update(toasts);
  for (const listener of listeners) listener();
}

function dismiss(id: number): void {
  change((all) => all.filter((toast) => toast.id !== id));
}

/** Shows a short text. Errors stay until they are dismissed. */
export function toast(text: string, tone: Toast["tone"] = "calm"): void {
  const id = next++;
  change((all) => [...all.filter((other) => other.text !== text), { id, tone, text }].slice(-MOST));
  if (tone !== "bad") setTimeout(() => dismiss(id), SHOWN_MS);
}

export function toastError(error: unknown): void {
  toast(error instanceof Error ? error.message : String(error), "bad");
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((one) => (
        <div key={one.id} className={`toast ${one.tone}`}>
          <Icon name={one.tone === "bad" ? "alert" : one.tone === "good" ? "success" : "bell"} />
          <span className="raw grow">{visible(one.text)}</span>
          <Button kind="quiet" icon="close" aria-label="Dismiss" onClick={() => dismiss(one.id)} />
        </div>
      ))}
    </div>
  );
}

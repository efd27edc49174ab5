import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { Dialog } from "../ui/dialog";

export type Shortcut = { keys: string; does: string };

const general: Shortcut[] = [
  { keys: "Ctrl K", does: "Search runs and commands" },
  { keys: "?", does: "Show this list" },
  { keys: "g r", does: "Go to the runs" },
  { keys: "g n", does: "Start a new run" },
  { keys: "g c", does: "Go to the cost" },
  { keys: "g m", does: "Go to the machine" },
  { keys: "/", does: "Search in the page" },
];

const ofRun: Shortcut[] = [
  { keys: "1 … 9", does: "Open a tab of the run" },
  { keys: "p", does: "Pause or resume the run" },
  { keys: "j / k", does: "Next or previous entry of a list" },
  { keys: "Enter", does: "Open the entry" },
];

const targets: Record<string, string> = { r: "/", n: "/new", c: "/cost", m: "/machine" };
/** The time in which the second key of `g r` must follow. */
const SEQUENCE_MS = 1_200;

/** Returns whether the user is typing, so that a letter is text and no shortcut. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) || target.closest("[role=dialog]") !== null)
  );
}

/** Handles the shortcuts of every page. */
export function useShortcuts({ openPalette, openList }: { openPalette: () => void; openList: () => void }): void {
  const navigate = useNavigate();
  const went = useRef(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openPalette();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const target = targets[event.key];
      if (target !== undefined && event.timeStamp - went.current < SEQUENCE_MS) {
        event.preventDefault();
        went.current = 0;
        void navigate({ to: target });
      } else if (event.key === "g") went.current = event.timeStamp;
      else if (event.key === "?") openList();
      else if (event.key === "/") {
        const field = document.querySelector<HTMLInputElement>("input[type=search]");
        if (field) {
          event.preventDefault();
          field.focus();
        }
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [navigate, openPalette, openList]);
}

export function ShortcutList({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title="Keyboard shortcuts">
      <Table title="Everywhere" shortcuts={general} />
      <Table title="On the page of a run" shortcuts={ofRun} />
    </Dialog>
  );
}

function Table({ title, shortcuts }: { title: string; shortcuts: Shortcut[] }) {
  return (
    <section className="stack tight">
      <h3>{title}</h3>
      <dl className="stack tight">
        {shortcuts.map(({ keys, does }) => (
          <div key={keys} className="row spread">
            <dt>{does}</dt>
            <dd>
              <kbd>{keys}</kbd>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

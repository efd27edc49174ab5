import { useEffect } from "react";
import { isTyping } from "../../shell/shortcuts";

/** The keys j and k select the next and the previous entry of a list. */
export function useListKeys(entries: number[], selected: number | null, select: (entry: number) => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const step = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
      if (step === 0) return;
      const at = selected === null ? -1 : entries.indexOf(selected);
      const next = entries[Math.min(Math.max(at + step, 0), entries.length - 1)];
      if (next !== undefined) select(next);
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [entries, selected, select]);
}

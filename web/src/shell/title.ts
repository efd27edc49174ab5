import { useEffect } from "react";
import { useFleet } from "../api/machine";

let text = "";
let waiting = 0;

function show(): void {
  document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${text} · ralph`;
}

/** Sets the title of the tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    text = title;
    show();
  }, [title]);
}

/** Shows in the title of every page how many runs need the user. */
export function useTitleBadge(): void {
  const fleet = useFleet();
  const count = fleet.data?.runs.filter((run) => run.needs_you).length ?? 0;
  useEffect(() => {
    waiting = count;
    show();
  }, [count]);
}

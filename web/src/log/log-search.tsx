import { useRef, useState } from "react";
import { Button } from "../ui/button";
import type { LogReader } from "./pieces";

/** Read at once while searching. */
const WINDOW = 1024 * 1024;

type SearchProps = { read: LogReader; size: number; onFound: (offset: number) => void };

/** Searches a log from its end to its start. The text may be anywhere in a file of any size. */
export function LogSearch({ read, size, onFound }: SearchProps) {
  const [text, setText] = useState("");
  const [state, setState] = useState<"idle" | "searching" | "none">("idle");
  const before = useRef<number | undefined>(undefined);
  const abort = useRef<AbortController>(null);

  const search = async () => {
    const wanted = text.toLowerCase();
    if (wanted === "") return;
    abort.current?.abort();
    const running = new AbortController();
    abort.current = running;
    setState("searching");
    try {
      const found = await findBefore(read, wanted, before.current ?? size, running.signal);
      before.current = found;
      if (found === undefined) setState("none");
      else {
        setState("idle");
        onFound(found);
      }
    } catch (error) {
      if (!running.signal.aborted) {
        setState("none");
        console.warn("the search failed", error);
      }
    }
  };

  return (
    <form
      className="row"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        void search();
      }}
    >
      <input
        type="search"
        className="input"
        aria-label="Search in the log"
        placeholder="Search backwards"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          before.current = undefined;
          setState("idle");
        }}
      />
      <Button type="submit" busy={state === "searching"} icon="search" aria-label="Search" />
      <span className="small muted" role="status">
        {state === "none" && "no (further) match"}
      </span>
    </form>
  );
}

/** Returns the offset of the last match that starts before `end`. */
export async function findBefore(read: LogReader, wanted: string, end: number, signal: AbortSignal): Promise<number | undefined> {
  const overlap = new TextEncoder().encode(wanted).length;
  for (let to = end; to > 0; to -= WINDOW) {
    const from = Math.max(0, to - WINDOW);
    const part = await read(from, to - from + overlap, signal);
    // Latin-1 keeps one character for each byte, so positions are offsets; other text is compared as its bytes.
    const bytes = new TextDecoder("latin1").decode(part.bytes).toLowerCase();
    const needle = new TextDecoder("latin1").decode(new TextEncoder().encode(wanted)).toLowerCase();
    const at = bytes.lastIndexOf(needle, to - from - 1);
    if (at >= 0) return from + at;
  }
  return undefined;
}

import { useEffect, useRef, useState } from "react";
import { openStream } from "../../api/stream";
import { visible, withoutColours } from "../../ui/visible";

/** The page keeps the end of the output; the whole of it is in the logs. */
const MOST_CHARACTERS = 64 * 1024;

/** The output of the running command or agent, as it arrives. `after` is the number of an event that the page has. */
export function LiveOutput({ run, iteration, after }: { run: string; iteration: number; after: number }) {
  const [text, setText] = useState("");
  const box = useRef<HTMLPreElement>(null);
  const start = useRef(after);
  useEffect(() => {
    let last = start.current;
    // The first connection gets the end of the output, a later one what the page does not have.
    let output = "";
    return openStream({
      address: () => `runs/${encodeURIComponent(run)}/events?after=${last}${output}`,
      onState: () => {},
      onFrames: (frames) => {
        let added = "";
        for (const frame of frames) {
          if (typeof frame.seq === "number") last = frame.seq;
          if (frame.type !== "output") continue;
          output = `&output=${String(frame.iteration)}:${String(frame.to)}`;
          if (frame.iteration === iteration && typeof frame.text === "string") added += frame.text;
        }
        if (added !== "") setText((before) => (before + added).slice(-MOST_CHARACTERS));
      },
    });
  }, [run, iteration]);
  useEffect(() => {
    const element = box.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, [text]);
  if (text === "") return <p className="small muted">Waiting for output …</p>;
  return (
    <pre className="output" ref={box} tabIndex={0} role="log" aria-label="Live output">
      {visible(withoutColours(text))}
    </pre>
  );
}

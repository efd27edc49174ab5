import { useEffect, useRef, useState } from "react";
import { openStream } from "../../api/stream";
import { visible, withoutColours } from "../../log/pieces";

/** The page keeps the end of the output; the whole of it is in the logs. */
const MOST_CHARACTERS = 64 * 1024;

/** The output of the running command or agent, as it arrives. */
export function LiveOutput({ run, iteration }: { run: string; iteration: number }) {
  const [text, setText] = useState("");
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    let after = 0;
    return openStream({
      address: () => `runs/${encodeURIComponent(run)}/events?output=1${after > 0 ? `&after=${after}` : ""}`,
      onState: () => {},
      onFrames: (frames) => {
        let added = "";
        for (const frame of frames) {
          if (typeof frame.seq === "number") after = frame.seq;
          if (frame.type === "output" && frame.iteration === iteration && typeof frame.text === "string") added += frame.text;
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

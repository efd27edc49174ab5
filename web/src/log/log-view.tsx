import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "react";
import { Button } from "../ui/button";
import { bytes } from "../ui/format";
import { PIECE_BYTES, PieceCache, type LogReader } from "./pieces";
import "./log-view.css";

const LINE_HEIGHT = 18;

type LogViewProps = {
  /** Names the log for people. */
  label: string;
  read: LogReader;
  /** The size of the log, as far as it is known; a larger one shows more. */
  size: number;
  /** Changes when the log was replaced and must be read again. */
  version?: string;
  /** The byte that is shown first, for example a match of a search. */
  target?: number | undefined;
};

/** Shows a log of any size. It follows the end of the log until the reader scrolls up. */
export function LogView({ label, read, size, version, target }: LogViewProps) {
  const cache = useMemo(() => new PieceCache(read), [read, version]);
  const [, repaint] = useReducer((n: number) => n + 1, 0);
  const [follow, setFollow] = useState(target === undefined);
  const box = useRef<HTMLDivElement>(null);
  const count = Math.max(1, Math.ceil(size / PIECE_BYTES));
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => cache.usualLines() * LINE_HEIGHT,
    overscan: 1,
  });
  const items = virtualizer.getVirtualItems();
  const first = items.at(0)?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;

  // Reads the visible pieces that are missing, and the last one again when the log has grown.
  useEffect(() => {
    const abort = new AbortController();
    for (let index = first; index <= last; index += 1) {
      const known = cache.get(index);
      if (known?.complete) continue;
      cache.load(index, abort.signal).then(repaint, (error: unknown) => {
        if (!abort.signal.aborted) console.warn("cannot read a piece of a log", error);
      });
    }
    return () => abort.abort();
  }, [cache, first, last, size]);

  useLayoutEffect(() => {
    if (follow && size > 0) virtualizer.scrollToIndex(count - 1, { align: "end" });
  }, [follow, size, count, virtualizer, items.length]);
  useLayoutEffect(() => {
    if (target !== undefined) {
      setFollow(false);
      virtualizer.scrollToIndex(Math.floor(target / PIECE_BYTES), { align: "start" });
    }
  }, [target, virtualizer]);

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    const rest = element.scrollHeight - element.scrollTop - element.clientHeight;
    if (rest > 4 * LINE_HEIGHT) setFollow(false);
    else if (rest < LINE_HEIGHT) setFollow(true);
  };

  return (
    <div className="log">
      <div className="log-bar row spread">
        <span className="small muted">
          {label}, {bytes(size)}
        </span>
        <Button kind="quiet" aria-pressed={follow} icon={follow ? "check" : "down"} onClick={() => setFollow(!follow)}>
          {follow ? "Following" : "Follow"}
        </Button>
      </div>
      {/* A scrollable box must be reachable by keyboard. */}
      <div className="log-box" ref={box} onScroll={onScroll} tabIndex={0} role="log" aria-label={label}>
        {size === 0 && <p className="muted log-empty">Nothing was written yet.</p>}
        <div style={{ height: virtualizer.getTotalSize(), position: "relative" }}>
          {items.map((item) => (
            <pre
              key={item.key}
              data-index={item.index}
              ref={virtualizer.measureElement}
              className="log-piece"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {cache.get(item.index)?.text ?? "…"}
            </pre>
          ))}
        </div>
      </div>
    </div>
  );
}

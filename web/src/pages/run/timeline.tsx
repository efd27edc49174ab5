import { useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useIterations } from "../../api/queries";
import type { IterationSummary, Run } from "../../api/types";
import { Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { clockTime, duration, usd } from "../../ui/format";
import { Icon } from "../../ui/icon";
import { LoopScore } from "../../ui/loop-score";
import { Badge, type Tone } from "../../ui/status";
import { useVirtualizer } from "@tanstack/react-virtual";
import { IterationDetail } from "./iteration-detail";
import { useListKeys } from "./list-keys";
import "./timeline.css";

/** The iterations of a run, newest first, with their prompts, actions, diffs and tests. */
export default function Timeline({ run }: { run: Run }) {
  const query = useIterations(run.id);
  const { iteration } = useSearch({ strict: false }) as { iteration?: number };
  const iterations = [...(query.data?.iterations ?? [])].reverse();
  const newest = iterations[0]?.iteration;
  // Without a choice of the user, the newest iteration is open, also when the next one starts.
  const [picked, setPicked] = useState<number | null>(iteration ?? null);
  const open = picked ?? newest ?? null;
  const setOpen = (one: number) => setPicked(one === newest ? null : one);
  useEffect(() => {
    if (iteration !== undefined) setPicked(iteration);
  }, [iteration]);
  const box = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: iterations.length,
    getScrollElement: () => box.current,
    estimateSize: () => 62,
    overscan: 8,
    getItemKey: (index) => iterations[index]?.iteration ?? index,
  });
  useListKeys(
    iterations.map((one) => one.iteration),
    open,
    setOpen,
  );
  if (query.isError) return <ErrorBox error={query.error} retry={() => void query.refetch()} />;
  if (query.isPending) return <p className="muted">Loading the iterations …</p>;
  if (iterations.length === 0) return <Empty icon="activity" title="No iteration has started." />;
  const selected = iterations.find((one) => one.iteration === open);
  return (
    <div className="timeline">
      <div className="timeline-list" ref={box} tabIndex={-1}>
        <ol style={{ height: virtualizer.getTotalSize() }} aria-label="Iterations">
          {virtualizer.getVirtualItems().map((item) => {
            const one = iterations[item.index];
            return (
              one && (
                <li key={item.key} style={{ transform: `translateY(${item.start}px)` }} ref={virtualizer.measureElement} data-index={item.index}>
                  <Entry summary={one} selected={one.iteration === open} onSelect={() => setOpen(one.iteration)} />
                </li>
              )
            );
          })}
        </ol>
      </div>
      <div className="timeline-detail">{selected && <IterationDetail key={selected.iteration} run={run} summary={selected} />}</div>
    </div>
  );
}

function Entry({ summary, selected, onSelect }: { summary: IterationSummary; selected: boolean; onSelect: () => void }) {
  const { metrics } = summary;
  const outcome = outcomeOf(summary);
  return (
    <button type="button" className="timeline-entry" aria-current={selected ? "true" : undefined} onClick={onSelect}>
      <span className="row spread">
        <strong className="number">Iteration {summary.iteration}</strong>
        <Badge tone={outcome.tone} text={outcome.words} />
      </span>
      <span className="cut small">{summary.summary || "–"}</span>
      <span className="row small muted number">
        <span>{clockTime(summary.started_at)}</span>
        {metrics && (
          <>
            <span>{duration(metrics.duration_ms / 1000)}</span>
            <span>{usd(metrics.cost_usd)}</span>
            {metrics.tests && (
              <span>
                {metrics.tests.passed} <Icon name="check" size={12} />
                <span className="visually-hidden">passed</span> {metrics.tests.failed} <Icon name="close" size={12} />
                <span className="visually-hidden">failed</span>
              </span>
            )}
            <span>
              loop <LoopScore score={metrics.loop_score} />
            </span>
          </>
        )}
      </span>
    </button>
  );
}

const tones: Record<string, Tone> = {
  completed: "good",
  action_failed: "warn",
  unreadable: "bad",
  rotated: "calm",
  paused: "warn",
  stop_requested: "calm",
  gave_up: "bad",
  out_of_budget: "bad",
  sandbox_lost: "bad",
  agent_stopped: "warn",
};

function outcomeOf(summary: IterationSummary): { words: string; tone: Tone } {
  const { outcome } = summary;
  if (outcome === null || outcome === undefined) return { words: "in progress", tone: "busy" };
  const name = typeof outcome === "string" ? outcome : "outcome" in outcome ? String(outcome.outcome) : (Object.keys(outcome)[0] ?? "completed");
  return { words: name.replaceAll("_", " "), tone: tones[name] ?? "calm" };
}

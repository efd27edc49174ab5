import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import LineChart, { type Series } from "../../chart/line-chart";
import type { IterationSummary, Run } from "../../api/types";
import { Card, Empty } from "../../ui/card";
import { duration, usd } from "../../ui/format";

const whole = (value: number) => (Number.isInteger(value) ? String(value) : "");
const score = (value: number) => value.toFixed(2);

/** Cost, circling, tests and duration over the iterations. A click opens the iteration. */
export default function Charts({ run, iterations }: { run: Run; iterations: IterationSummary[] }) {
  const navigate = useNavigate();
  const data = useMemo(() => columns(iterations), [iterations]);
  if (iterations.length === 0) {
    return (
      <Card title="Iterations">
        <Empty icon="activity" title="No iteration has started." />
      </Card>
    );
  }
  const open = (iteration: number) =>
    void navigate({ to: "/runs/$run/$tab", params: { run: run.id, tab: "timeline" }, search: { iteration } as never });
  const last = iterations.at(-1);
  return (
    <Card title={`Iterations (${iterations.length})`}>
      <div className="stack">
        <div className="charts">
          <LineChart title="Cost so far" summary={`${usd(run.cost_usd)} after ${iterations.length}`} x={data.x} series={data.cost} format={usd} onPick={open} />
          <LineChart
            title="Loop score"
            summary={last?.evidence.join("; ") || "no sign of circling"}
            x={data.x}
            series={data.score}
            format={score}
            max={1}
            onPick={open}
          />
          <LineChart title="Tests" summary="passed and failed tests of each iteration" x={data.x} series={data.tests} format={whole} onPick={open} />
          <LineChart title="Duration" summary="seconds of each iteration" x={data.x} series={data.duration} format={duration} onPick={open} />
        </div>
        {last && last.evidence.length > 0 && (
          <div className="stack tight">
            <h3>Evidence for the last loop score</h3>
            <ul className="small">
              {last.evidence.map((line) => (
                <li key={line} className="raw">
                  {line}
                </li>
              ))}
            </ul>
          </div>
        )}
      </div>
    </Card>
  );
}

function columns(iterations: IterationSummary[]): Record<"cost" | "score" | "tests" | "duration", Series[]> & { x: number[] } {
  let total = 0;
  const cost = iterations.map((one) => (total += one.metrics?.cost_usd ?? 0));
  const metric = (read: (one: NonNullable<IterationSummary["metrics"]>) => number | null | undefined) =>
    iterations.map((one) => (one.metrics ? (read(one.metrics) ?? null) : null));
  return {
    x: iterations.map((one) => one.iteration),
    cost: [{ label: "cost", color: "--accent", values: cost }],
    score: [{ label: "loop score", color: "--warn", values: metric((one) => one.loop_score) }],
    tests: [
      { label: "passed", color: "--good", values: metric((one) => one.tests?.passed) },
      { label: "failed", color: "--bad", values: metric((one) => one.tests?.failed) },
    ],
    duration: [{ label: "duration", color: "--accent", values: metric((one) => one.duration_ms / 1000), bars: true }],
  };
}

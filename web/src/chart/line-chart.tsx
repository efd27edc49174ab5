import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { useTheme } from "../shell/theme";
import "uplot/dist/uPlot.min.css";
import "./line-chart.css";

export type Series = { label: string; color: string; values: (number | null)[]; bars?: boolean };

type ChartProps = {
  title: string;
  /** The text for people who cannot see the chart. */
  summary: string;
  /** The numbers of the iterations. */
  x: number[];
  series: Series[];
  format: (value: number) => string;
  max?: number;
  onPick?: (x: number) => void;
};

const HEIGHT = 150;

/** A chart over iterations. */
export default function LineChart({ title, summary, x, series, format, max, onPick }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const pick = useRef(onPick);
  pick.current = onPick;
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const styles = getComputedStyle(element);
    const color = (name: string) => styles.getPropertyValue(name).trim();
    const axis: uPlot.Axis = {
      stroke: color("--text-2"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line"), width: 1 },
      font: "11px system-ui, sans-serif",
    };
    // Without the pointer the legend shows the last values.
    const showLast = (shown: uPlot) => shown.setLegend({ idx: x.length - 1 });
    const plot = new uPlot(
      {
        width: Math.max(element.clientWidth, 120),
        height: HEIGHT,
        scales: { x: { time: false }, y: { range: (_plot, _low, high) => [0, max ?? (high > 0 ? high * 1.1 : 1)] } },
        legend: { live: true },
        hooks: { ready: [showLast] },
        cursor: { y: false, drag: { x: false, y: false } },
        axes: [
          { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200], space: 40 },
          { ...axis, size: 54, values: (_plot, ticks) => ticks.map(format) },
        ],
        series: [
          { label: "iteration" },
          ...series.map((one): uPlot.Series => {
            const stroke = color(one.color);
            return {
              label: one.label,
              stroke,
              width: 2,
              // Not every iteration runs the tests.
              spanGaps: true,
              points: { show: x.length < 60, size: 5 },
              value: (_plot, value) => (value === null || value === undefined ? "–" : format(value)),
              ...(one.bars && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.7, 24] }), fill: `${stroke}`, points: { show: false } } : {}),
            };
          }),
        ],
      },
      [x, ...series.map((one) => one.values)],
      element,
    );
    plot.over.addEventListener("mouseleave", () => showLast(plot));
    const onClick = () => {
      const index = plot.cursor.idx;
      if (index !== null && index !== undefined && x[index] !== undefined) pick.current?.(x[index]);
    };
    plot.over.addEventListener("click", onClick);
    const observer = new ResizeObserver(() => plot.setSize({ width: Math.max(element.clientWidth, 120), height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [x, series, format, max, theme]);
  return (
    <figure className="chart">
      <figcaption>{title}</figcaption>
      <div ref={host} role="img" aria-label={`${title}: ${summary}`} />
    </figure>
  );
}

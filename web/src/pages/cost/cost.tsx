import { lazy, Suspense, useMemo, useState } from "react";
import { useCost } from "../../api/machine";
import { useTitle } from "../../shell/title";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { count, plural, usd } from "../../ui/format";

const LineChart = lazy(() => import("../../chart/line-chart"));

const groups = [
  { by: "day", text: "Days" },
  { by: "repo", text: "Repositories" },
  { by: "model", text: "Models" },
  { by: "run", text: "Runs" },
] as const;

const times = [
  { since: "7d", text: "7 days" },
  { since: "30d", text: "30 days" },
  { since: "", text: "all" },
];

/** The cost of model calls, over days, repositories, models and runs. */
export default function Cost() {
  useTitle("Cost");
  const [by, setBy] = useState<(typeof groups)[number]["by"]>("day");
  const [since, setSince] = useState("30d");
  const query = useCost(by, since);
  const report = query.data;
  const days = useMemo(() => (report?.by === "day" ? [...report.rows].sort((a, b) => a.key.localeCompare(b.key)) : []), [report]);
  const x = useMemo(() => days.map((_, index) => index + 1), [days]);
  const series = useMemo(() => [{ label: "cost", color: "--accent", values: days.map((day) => day.cost_usd), bars: true }], [days]);
  return (
    <div className="page">
      <header className="page-header">
        <h1>Cost</h1>
        <div className="row wrap">
          <div className="row" role="group" aria-label="Group by">
            {groups.map((group) => (
              <Button key={group.by} kind="quiet" aria-pressed={by === group.by} onClick={() => setBy(group.by)}>
                {group.text}
              </Button>
            ))}
          </div>
          <div className="row" role="group" aria-label="Time">
            {times.map((time) => (
              <Button key={time.since} kind="quiet" aria-pressed={since === time.since} onClick={() => setSince(time.since)}>
                {time.text}
              </Button>
            ))}
          </div>
        </div>
      </header>
      {query.isError && <ErrorBox error={query.error} retry={() => void query.refetch()} />}
      {report && (
        <Card title={`${usd(report.total.cost_usd)} in ${plural(report.total.runs, "run")}`}>
          {report.rows.length === 0 ? (
            <Empty icon="cost" title="No model was called in this time." />
          ) : (
            <div className="stack">
              {days.length > 1 && (
                <Suspense fallback={null}>
                  <LineChart title="Cost per day" summary={`${usd(report.total.cost_usd)} in ${plural(days.length, "day")}`} x={x} series={series} format={usd} />
                </Suspense>
              )}
              <div className="table-box" tabIndex={0} role="region" aria-label="Cost">
                <table className="table">
                  <thead>
                    <tr>
                      <th scope="col">{groups.find((group) => group.by === by)?.text}</th>
                      <th scope="col">Cost</th>
                      <th scope="col">Runs</th>
                      <th scope="col">Calls</th>
                      <th scope="col">Tokens in</th>
                      <th scope="col">Tokens out</th>
                    </tr>
                  </thead>
                  <tbody>
                    {report.rows.map((row) => (
                      <tr key={row.key}>
                        <th scope="row" className="raw">
                          {row.key}
                        </th>
                        <td className="number">{usd(row.cost_usd)}</td>
                        <td className="number">{row.runs}</td>
                        <td className="number">{row.calls}</td>
                        <td className="number">{count(row.tokens.input)}</td>
                        <td className="number">{count(row.tokens.output)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </div>
          )}
        </Card>
      )}
    </div>
  );
}

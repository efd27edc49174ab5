import type { components } from "../../api/schema";
import { Card, Facts } from "../../ui/card";
import { Icon } from "../../ui/icon";
import { Badge } from "../../ui/status";

type Preview = components["schemas"]["StartPreview"];

/** The plan of a run that was not started, with everything that is missing. */
export function PlanView({ preview }: { preview: Preview }) {
  const missing = preview.missing ?? [];
  const plan = (preview.plan ?? {}) as Record<string, unknown>;
  const facts = Object.entries(plan)
    .filter(([, value]) => typeof value === "string" || typeof value === "number")
    .map(([key, value]): [string, React.ReactNode] => [key.replaceAll("_", " "), String(value)]);
  return (
    <Card title="Plan" aside={<Badge tone={missing.length === 0 ? "good" : "warn"} text={missing.length === 0 ? "ready to start" : `${missing.length} missing`} />}>
      <div className="stack">
        {missing.map((problem, index) => (
          <p key={index} className="notice warn row">
            <Icon name="alert" />
            <span className="raw">{words(problem)}</span>
          </p>
        ))}
        <Facts facts={facts} />
      </div>
    </Card>
  );
}

function words(problem: Record<string, unknown>): string {
  return [problem.what, problem.why, problem.fix].filter((part) => typeof part === "string" && part !== "").join(" — ");
}

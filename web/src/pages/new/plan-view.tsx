import type { ReactNode } from "react";
import type { components } from "../../api/schema";
import { Card, Facts } from "../../ui/card";
import { duration, plural, shortCommit, usd } from "../../ui/format";
import { Icon } from "../../ui/icon";
import { Badge } from "../../ui/status";

type Preview = components["schemas"]["StartPreview"];

/** The parts of a plan that a person decides by. */
type Plan = Partial<{
  title: string;
  branch: string;
  base_branch: string;
  base: string;
  engine: string;
  agent: { agent?: string } | string | null;
  model: string;
  sandbox: string;
  isolation: string;
  test_command: string;
  setup_command: string | null;
  checkboxes: number;
  mode: string;
  delivery: string;
  limits: { max_iterations?: number; max_wall_time?: { secs: number }; max_cost?: unknown; max_tokens?: number | null };
}>;

/** The plan of a run that was not started, with everything that is missing. */
export function PlanView({ preview }: { preview: Preview }) {
  const missing = preview.missing ?? [];
  const pending = preview.proposals?.pending ?? [];
  return (
    <Card title="Plan" aside={<Badge tone={missing.length === 0 ? "good" : "warn"} text={missing.length === 0 ? "ready to start" : `${missing.length} missing`} />}>
      <div className="stack">
        {missing.map((problem, index) => (
          <p key={index} className="notice warn row">
            <Icon name="alert" />
            <span className="raw">{words(problem)}</span>
          </p>
        ))}
        {preview.notices?.map((notice) => (
          <p key={notice} className="notice raw">
            {notice}
          </p>
        ))}
        {pending.length > 0 && <p className="notice raw">{`The start asks you to approve ${plural(pending.length, "setting")} that the repository proposes.`}</p>}
        {preview.plan && <Facts facts={facts(preview.plan as Plan)} />}
      </div>
    </Card>
  );
}

function facts(plan: Plan): [string, ReactNode][] {
  const agent = typeof plan.agent === "string" ? plan.agent : plan.agent?.agent;
  return [
    ["Task", `${plan.title ?? "–"} (${plural(plan.checkboxes ?? 0, "box", "boxes")})`],
    ["Branch", <span key="branch" className="code">{`${plan.branch ?? "–"} from ${plan.base_branch ?? "–"} ${shortCommit(plan.base ?? "")}`}</span>],
    ["Works", plan.engine === "agent" ? `agent ${agent ?? "–"}` : `model ${plan.model ?? "–"}`],
    ["Sandbox", `${plan.sandbox ?? "–"}, ${plan.isolation === "none" ? "no isolation" : (plan.isolation ?? "–")}`],
    ["Verified by", <span key="test" className="code">{plan.test_command ?? "–"}</span>],
    ...(plan.setup_command ? [["Set-up", <span key="setup" className="code">{plan.setup_command}</span>] as [string, ReactNode]] : []),
    ["Budgets", budgets(plan.limits ?? {})],
    ["Mode", plan.mode ?? "–"],
    ["Delivery", (plan.delivery ?? "–").replaceAll("_", " ")],
  ];
}

function budgets(limits: NonNullable<Plan["limits"]>): string {
  const parts = [
    limits.max_iterations && plural(limits.max_iterations, "iteration"),
    limits.max_wall_time && duration(limits.max_wall_time.secs),
    typeof limits.max_cost === "number" && usd(limits.max_cost),
    limits.max_tokens && `${limits.max_tokens.toLocaleString()} tokens`,
  ];
  return parts.filter(Boolean).join(", ") || "–";
}

function words(problem: Record<string, unknown>): string {
  return [problem.what, problem.why, problem.fix].filter((part) => typeof part === "string" && part !== "").join(" — ");
}

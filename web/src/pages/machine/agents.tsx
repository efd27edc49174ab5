import { useAgents, useCheckToken, useTokens } from "../../api/machine";
import type { components } from "../../api/schema";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { plural } from "../../ui/format";
import { Badge, type Tone } from "../../ui/status";

type Credential = components["schemas"]["CredentialEntry"];

const states: Record<Credential["state"], { text: string; tone: Tone }> = {
  found: { text: "found", tone: "good" },
  missing: { text: "missing", tone: "warn" },
  expired: { text: "expired", tone: "bad" },
  unusable: { text: "unusable", tone: "bad" },
  not_needed: { text: "not needed", tone: "calm" },
};

/** The coding agents and their credentials. A credential is never shown. */
export function Agents() {
  const agents = useAgents();
  return (
    <div className="stack loose">
      <Card title="Agents">
        {agents.isError && <ErrorBox error={agents.error} />}
        <ul className="stack">
          {agents.data?.agents.map((agent) => (
            <li key={agent.name} className="stack tight">
              <span className="row wrap">
                <strong>{agent.name}</strong>
                <Badge tone={agent.usable ? "good" : "calm"} text={agent.usable ? "usable" : "not usable"} />
                {agent.version && <span className="small muted">{agent.version}</span>}
              </span>
              <span className="small muted raw">
                credential {states[agent.credential.state].text}
                {agent.credential.fix && agent.credential.state !== "found" && ` — ${agent.credential.fix}`}
              </span>
            </li>
          ))}
        </ul>
      </Card>
      <Tokens />
    </div>
  );
}

function Tokens() {
  const tokens = useTokens();
  const check = useCheckToken();
  return (
    <Card title="Credentials">
      {tokens.isError && <ErrorBox error={tokens.error} />}
      <ul className="stack">
        {tokens.data?.tokens.map((token) => (
          <li key={token.agent} className="stack tight">
            <div className="row wrap spread">
              <span className="row wrap">
                <strong>{token.agent}</strong>
                <Badge {...states[token.state]} />
                {token.mode && <span className="small muted">{token.mode}</span>}
                {token.store && <span className="small muted">from {token.store}</span>}
                {token.days_left !== null && token.days_left !== undefined && <span className="small muted">{plural(token.days_left, "day")} left</span>}
              </span>
              <Button
                icon="check"
                busy={check.isPending && check.variables === token.agent}
                forbidden={token.state === "missing" ? "there is nothing to test" : undefined}
                onClick={() => check.mutate(token.agent)}
              >
                Test
              </Button>
            </div>
            {token.problem && <span className="small raw">{token.problem}</span>}
            {token.fix && token.state !== "found" && <span className="small muted raw">{token.fix}</span>}
            {check.variables === token.agent && check.data && (
              <p className={`notice ${check.data.accepted ? "good" : "bad"} raw`} role="status">
                {check.data.accepted ? "The provider accepts the credential." : (check.data.problem ?? "The credential could not be tested.")}
              </p>
            )}
            {check.variables === token.agent && check.isError && <ErrorBox error={check.error} />}
          </li>
        ))}
      </ul>
    </Card>
  );
}

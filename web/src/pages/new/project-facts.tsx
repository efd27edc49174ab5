import type { UseQueryResult } from "@tanstack/react-query";
import type { components } from "../../api/schema";
import { Facts } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { Icon } from "../../ui/icon";

type Project = components["schemas"]["ProjectReport"];

/** What the server found in the repository. */
export function ProjectFacts({ query }: { query: UseQueryResult<Project> }) {
  if (query.isError) return <ErrorBox error={query.error} />;
  const project = query.data;
  if (!project) return null;
  if (project.repository_problem) {
    return (
      <p className="notice warn raw">
        {project.repository_problem}
        {project.repository_fix && ` — ${project.repository_fix}`}
      </p>
    );
  }
  const facts: [string, React.ReactNode][] = [
    ["Default branch", project.default_branch ?? "–"],
    ["Language", project.languages.join(", ") || "not detected"],
    ["Test command", project.test_commands[0] ? <code key="test">{project.test_commands[0].command}</code> : "not detected"],
    ["Sandbox", project.sandbox_problem ? `${project.sandbox}: ${project.sandbox_problem}` : project.sandbox],
    ["Worker", project.agent ? `agent ${project.agent}` : (project.model ?? "none is ready")],
  ];
  if (project.setup_command) facts.push(["Set-up", <code key="setup">{project.setup_command}</code>]);
  return (
    <div className="stack">
      <Facts facts={facts} />
      {!project.agent && !project.model && project.worker_fix && (
        <p className="notice warn small raw">{`No agent and no model can be used yet: ${project.worker_fix}.`}</p>
      )}
      {project.hosts.length > 0 && (
        <details>
          <summary className="small">
            <Icon name="network" size={14} /> {project.hosts.length} hosts may be needed
          </summary>
          <ul className="stack tight small">
            {project.hosts.map((host) => (
              <li key={`${host.host} ${host.file}`}>
                <span className="code">{host.host}</span> <span className="muted">({host.file})</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

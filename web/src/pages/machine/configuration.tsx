import { useState } from "react";
import { useApprove, useConfig, useRepositories } from "../../api/machine";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";

/** Every effective setting and where it comes from; what a repository proposes. */
export function Configuration() {
  const repositories = useRepositories();
  const [directory, setDirectory] = useState("");
  const [filter, setFilter] = useState("");
  const query = useConfig(directory);
  const approve = useApprove(query.data?.directory ?? "");
  const pending = query.data?.trust.pending ?? [];
  const settings = (query.data?.settings ?? []).filter((setting) => setting.key.includes(filter.toLowerCase()));
  return (
    <div className="stack loose">
      <div className="filters">
        <select className="input" aria-label="Project" value={directory} onChange={(event) => setDirectory(event.target.value)}>
          <option value="">the server's directory</option>
          {repositories.data?.repositories
            .filter((one) => one.is_local)
            .map((one) => (
              <option key={one.repository} value={one.repository}>
                {one.repository}
              </option>
            ))}
        </select>
        <input type="search" className="input" aria-label="Search settings" placeholder="Search settings" value={filter} onChange={(event) => setFilter(event.target.value)} />
      </div>
      {query.isError && <ErrorBox error={query.error} />}
      {pending.length > 0 && (
        <Card
          title="Proposals of the repository that wait for you"
          aside={
            <Button
              busy={approve.isPending}
              onClick={() => approve.mutate(pending.map(({ file, key, value }) => ({ file, key, value })), { onError: toastError })}
            >
              Approve exactly these
            </Button>
          }
        >
          <ul className="stack">
            {pending.map((proposal) => (
              <li key={`${proposal.file} ${proposal.key}`} className="stack tight">
                <span className="code raw">
                  {proposal.file}: {proposal.key} = {proposal.value}
                </span>
                <span className="small muted raw">{proposal.allows}</span>
              </li>
            ))}
          </ul>
        </Card>
      )}
      <Card title="Effective settings">
        <div className="table-box" tabIndex={0} role="region" aria-label="Settings">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Value</th>
                <th scope="col">From</th>
              </tr>
            </thead>
            <tbody>
              {settings.map((setting) => (
                <tr key={setting.key}>
                  <th scope="row" className="code">
                    {setting.key}
                  </th>
                  <td className="code raw">{JSON.stringify(setting.value)}</td>
                  <td className="raw">
                    {setting.source}
                    {setting.file && <span className="muted"> {setting.file}</span>}
                    {setting.variable && <span className="muted"> {setting.variable}</span>}
                    {setting.refused && <span className="muted"> — {setting.refused}</span>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Card>
    </div>
  );
}

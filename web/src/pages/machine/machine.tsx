import { Link, useParams } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { useTitle } from "../../shell/title";
import { Access } from "./access";
import { Agents } from "./agents";
import { Configuration } from "./configuration";
import { Disk } from "./disk";
import { Issues } from "./issues";
import { Models } from "./models";
import { Providers } from "./providers";
import { Sandboxes } from "./sandboxes";
import { Settings } from "./settings";

const tabs: { id: string; text: string; view: ComponentType }[] = [
  { id: "providers", text: "Sandbox providers", view: Providers },
  { id: "agents", text: "Agents", view: Agents },
  { id: "models", text: "Models", view: Models },
  { id: "issues", text: "GitHub and issues", view: Issues },
  { id: "configuration", text: "Configuration", view: Configuration },
  { id: "sandboxes", text: "Sandboxes", view: Sandboxes },
  { id: "disk", text: "Disk", view: Disk },
  { id: "access", text: "Access", view: Access },
  { id: "page", text: "This page", view: Settings },
];

/** What the machine has and what it lacks. */
export default function Machine() {
  const { tab } = useParams({ strict: false }) as { tab?: string };
  const current = tabs.find((one) => one.id === tab) ?? tabs[0]!;
  useTitle(`${current.text} · Machine`);
  const View = current.view;
  return (
    <div className="page">
      <header className="page-header">
        <h1>Machine</h1>
      </header>
      <nav className="tabs" aria-label="Parts of the machine">
        {tabs.map((one) => (
          <Link key={one.id} to="/machine/$tab" params={{ tab: one.id }} replace aria-current={one.id === current.id ? "page" : undefined}>
            {one.text}
          </Link>
        ))}
      </nav>
      <View />
    </div>
  );
}

import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog as Primitive } from "radix-ui";
import { useRuns } from "../api/queries";
import { Icon, type IconName } from "../ui/icon";
import { repoName } from "../ui/format";
import { StatusBadge } from "../ui/status";
import { setTheme, type Theme } from "./theme";
import "./palette.css";

const pages: { text: string; to: string; icon: IconName }[] = [
  { text: "Runs", to: "/", icon: "home" },
  { text: "New run", to: "/new", icon: "plus" },
  { text: "Cost", to: "/cost", icon: "cost" },
  { text: "Machine", to: "/machine", icon: "server" },
];

const themes: { text: string; theme: Theme; icon: IconName }[] = [
  { text: "Light theme", theme: "light", icon: "sun" },
  { text: "Dark theme", theme: "dark", icon: "moon" },
  { text: "Theme of the system", theme: "system", icon: "sunMoon" },
];

/** Finds runs, pages and commands by their names. */
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Primitive.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Primitive.Portal>
        <Primitive.Overlay className="dialog-backdrop" />
        <Primitive.Content className="palette" aria-describedby={undefined}>
          <Primitive.Title className="visually-hidden">Search runs and commands</Primitive.Title>
          {open && <PaletteList onClose={onClose} />}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  );
}

function PaletteList({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const runs = useRuns({ limit: 200 });
  const go = (to: string) => {
    onClose();
    void navigate({ to });
  };
  return (
    <Command label="Search runs and commands" loop>
      <Command.Input autoFocus placeholder="Search runs, pages and commands" />
      <Command.List>
        <Command.Empty>Nothing has this name.</Command.Empty>
        <Command.Group heading="Pages">
          {pages.map((page) => (
            <Command.Item key={page.to} value={`page ${page.text}`} onSelect={() => go(page.to)}>
              <Icon name={page.icon} /> {page.text}
            </Command.Item>
          ))}
        </Command.Group>
        <Command.Group heading="Runs">
          {runs.data?.runs.map((run) => (
            <Command.Item key={run.id} value={`${run.title} ${run.task_id} ${run.id} ${run.repo}`} onSelect={() => go(`/runs/${run.id}`)}>
              <StatusBadge status={run.status} />
              <span className="cut grow">{run.title || run.task_id}</span>
              <span className="faint small cut">{repoName(run.repo ?? "")}</span>
            </Command.Item>
          ))}
        </Command.Group>
        <Command.Group heading="View">
          {themes.map((one) => (
            <Command.Item
              key={one.theme}
              value={one.text}
              onSelect={() => {
                setTheme(one.theme);
                onClose();
              }}
            >
              <Icon name={one.icon} /> {one.text}
            </Command.Item>
          ))}
        </Command.Group>
      </Command.List>
    </Command>
  );
}

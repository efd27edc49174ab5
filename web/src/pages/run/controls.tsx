import { useNavigate } from "@tanstack/react-router";
import { DropdownMenu } from "radix-ui";
import { useEffect, useState } from "react";
import { useChangeMode, useCommand, useRemoveRun } from "../../api/steering";
import type { Run } from "../../api/types";
import { isTyping } from "../../shell/shortcuts";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { ContinueDialog } from "./continue-dialog";
import { forbidden } from "./forbidden";
import { ProfileDialog } from "./profile-dialog";
import "./controls.css";

const modes = ["autonomous", "guided", "debug"] as const;

type Open = "continue" | "profile" | "mode" | "stop" | "remove" | null;

/** The commands of a run. Those that the run does not accept now say why. */
export function Controls({ run }: { run: Run }) {
  const command = useCommand(run.id);
  const [open, setOpen] = useState<Open>(null);
  const send = (name: "pause" | "resume" | "rotate" | "stop") =>
    command.mutate(name, {
      onError: toastError,
      onSuccess: ({ effect }) => setWaiting({ effect, status: run.status, iteration: run.iteration }),
    });
  // An accepted command may wait for the end of an action; the page says so until the run has changed.
  const [waiting, setWaiting] = useState<{ effect: string; status: string; iteration: number } | null>(null);
  const isWaiting = waiting !== null && waiting.status === run.status && waiting.iteration === run.iteration;
  const why = (name: string) => forbidden(run, name);
  const close = () => setOpen(null);
  // Nothing continues a run that has ended, except more budget.
  const isOver = ["succeeded", "failed", "stopped"].includes(run.status);
  const canResume = why("resume") === undefined;
  usePauseKey(() => (canResume ? send("resume") : why("pause") === undefined && send("pause")));
  return (
    <div className="row wrap controls" role="group" aria-label="Commands of the run">
      {isOver ? null : canResume ? (
        <Button kind="primary" icon="play" busy={command.isPending} onClick={() => send("resume")}>
          Resume
        </Button>
      ) : (
        <Button icon="pause" busy={command.isPending} forbidden={why("pause")} onClick={() => send("pause")}>
          Pause
        </Button>
      )}
      {!isOver && (
        <>
          <Button icon="rotate" forbidden={why("rotate")} onClick={() => send("rotate")}>
            Rotate
          </Button>
          <Button icon="stop" kind="danger" forbidden={why("stop")} onClick={() => setOpen("stop")}>
            Stop
          </Button>
        </>
      )}
      <DropdownMenu.Root modal={false}>
        <DropdownMenu.Trigger asChild>
          <Button icon="more" aria-label="More commands" />
        </DropdownMenu.Trigger>
        <DropdownMenu.Portal>
          <DropdownMenu.Content className="menu" align="end" sideOffset={6} collisionPadding={8}>
            <MenuItem text="Raise budgets and continue" why={why("limits")} onSelect={() => setOpen("continue")} />
            <MenuItem text="Change the model" why={why("profile")} onSelect={() => setOpen("profile")} />
            <MenuItem text="Change the mode" why={why("mode")} onSelect={() => setOpen("mode")} />
            <DropdownMenu.Separator className="menu-line" />
            <MenuItem text="Remove the run" onSelect={() => setOpen("remove")} />
          </DropdownMenu.Content>
        </DropdownMenu.Portal>
      </DropdownMenu.Root>
      {isWaiting && (
        <p className="small muted controls-note" role="status">
          {waiting.effect}
        </p>
      )}
      {open === "continue" && <ContinueDialog run={run} onClose={close} />}
      {open === "profile" && <ProfileDialog run={run} onClose={close} />}
      {open === "mode" && <ModeDialog run={run} onClose={close} />}
      {open === "stop" && (
        <Confirm
          title="Stop the run?"
          text="The run ends without success. Its branch, its files and its evidence stay."
          action="Stop the run"
          onClose={close}
          onConfirm={() => {
            close();
            send("stop");
          }}
        />
      )}
      {open === "remove" && <RemoveDialog run={run} onClose={close} />}
    </div>
  );
}

function MenuItem({ text, why, onSelect }: { text: string; why?: string | undefined; onSelect: () => void }) {
  return (
    <DropdownMenu.Item className="menu-item" disabled={why !== undefined} onSelect={onSelect}>
      {text}
      {why && <span className="small muted">{why}</span>}
    </DropdownMenu.Item>
  );
}

function Confirm(props: { title: string; text: string; action: string; onConfirm: () => void; onClose: () => void }) {
  return (
    <Dialog open onClose={props.onClose} title={props.title} description={props.text}>
      <div className="dialog-actions">
        <Button onClick={props.onClose}>Cancel</Button>
        <Button kind="danger" onClick={props.onConfirm}>
          {props.action}
        </Button>
      </div>
    </Dialog>
  );
}

function RemoveDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const navigate = useNavigate();
  const remove = useRemoveRun(run.id);
  const [force, setForce] = useState(false);
  return (
    <Dialog open onClose={onClose} title="Remove the run?" description="Its journal, logs, evidence and sandboxes are deleted. The branch in the repository stays.">
      {remove.isError && <p className="notice bad raw">{remove.error.message}</p>}
      {remove.isError && (
        <label className="row">
          <input type="checkbox" checked={force} onChange={(event) => setForce(event.target.checked)} />
          Remove it although it is unfinished or has commits that were not delivered
        </label>
      )}
      <div className="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" busy={remove.isPending} onClick={() => remove.mutate(force, { onSuccess: () => void navigate({ to: "/" }) })}>
          Remove
        </Button>
      </div>
    </Dialog>
  );
}

const modeWords = {
  autonomous: "You change the task, the guardrails and the controls. The run works alone.",
  guided: "You also send notes and messages to the model or agent.",
  debug: "You also start the task's own checks in the sandbox.",
};

function ModeDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const change = useChangeMode(run.id);
  return (
    <Dialog open onClose={onClose} title="Change the mode" description="The mode is in force from the next iteration.">
      <div className="stack">
        {modes.map((mode) => (
          <button
            key={mode}
            type="button"
            className="choice"
            aria-pressed={run.mode === mode}
            onClick={() => change.mutate(mode, { onSuccess: onClose, onError: toastError })}
          >
            <span className="row">
              {run.mode === mode && <Icon name="check" />}
              <strong>{mode}</strong>
            </span>
            <span className="small muted">{modeWords[mode]}</span>
          </button>
        ))}
      </div>
    </Dialog>
  );
}

function usePauseKey(toggle: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "p" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target)) toggle();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  });
}

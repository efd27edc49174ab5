//! Handles user commands, and performs immediately those that must not wait for the end of an
//! action: allowing a host and queuing a message. Also records the events of the gate.

use ralph_core::budget::{self, BudgetLimits};
use ralph_core::event::{
    AgentSessionEvent, CommandEvent, EgressEvent, Event, MessageState, RunEvent,
};
use ralph_core::net::{AllowlistEntry, ProviderTool};
use ralph_core::ports::{GateControl, GateEvent};
use ralph_core::run::Command;
use ralph_core::state::{RunState, ScreenedTool};

use crate::controls::{ControlEvent, Controls, GateHandle, TimedLine};
use crate::error::RunError;
use crate::journal::Journal;
use crate::mailbox::CommandFile;
use crate::recorder::Recorder;
use crate::user_commands::CommandResult;

/// Records the response to a user command and applies it. A stop and an interrupt are returned as
/// errors, which end the work.
pub(crate) fn handle_control_event(
    journal: &mut Journal,
    control: &mut Controls,
    event: ControlEvent,
) -> Result<(), RunError> {
    let ControlEvent::Command(file) = event else {
        return Err(RunError::Interrupted);
    };
    let CommandFile { id, command } = file.clone();
    if journal.state().last_command_file.as_ref() == Some(&id) {
        // The process restarted between the response and the removal of the file.
        control.discard(&file);
        return Ok(());
    }
    let refused = journal.state().rejection_reason(&command);
    let refused = refused.or_else(|| refuse_without_gate(&control.gate, &command));
    let accepted = refused.is_none();
    journal.append(CommandEvent::CommandReceived {
        id: id.clone(),
        command: command.clone(),
        refused,
    })?;
    control.discard(&file);
    if accepted {
        control.apply(&command);
        if let Some(done) = run_immediately(journal, &control.gate, &id, &command)? {
            control.unlogged.push(TimedLine {
                at: journal.state().updated_at,
                text: format!("{}: {}", command.verb(), done.detail),
            });
        }
        if command == Command::Stop {
            return Err(RunError::Stopped);
        }
    }
    Ok(())
}

/// Returns why a command is refused in this state of the gate.
pub(crate) fn refuse_without_gate(gate: &GateHandle, command: &Command) -> Option<String> {
    match (gate, command) {
        (GateHandle::Missing, Command::AllowHost { .. }) => {
            Some("its sandbox has no gate that could allow a host".into())
        }
        (GateHandle::Missing | GateHandle::Open(_) | GateHandle::Closed, _) => None,
    }
}

/// Performs a command and records it, if that needs only the journal and the gate.
pub(crate) fn run_immediately(
    journal: &mut Journal,
    gate: &GateHandle,
    id: &str,
    command: &Command,
) -> Result<Option<CommandResult>, RunError> {
    let done = match command {
        Command::AllowHost { host } => allow_host(journal, gate, host)?,
        Command::Message { text } => queue_message(journal, id, text)?,
        Command::Limits(change) => change_limits(journal, change)?,
        Command::Answer { text } => queue_answer(journal, id, text)?,
        Command::Pause
        | Command::Resume
        | Command::Rotate
        | Command::Stop
        | Command::Profile { .. }
        | Command::Task { .. }
        | Command::Mode { .. }
        | Command::Note(_)
        | Command::Edit(_)
        | Command::Guardrail(_)
        | Command::Diagnose
        | Command::Apply
        | Command::Debug { .. } => return Ok(None),
    };
    journal.append(CommandEvent::CommandDone {
        id: id.to_owned(),
        done: done.succeeded,
        detail: done.detail.clone(),
        output: done.output.clone(),
    })?;
    Ok(Some(done))
}

/// Allows a host from now on.
pub(crate) fn allow_host(
    journal: &mut Journal,
    gate: &GateHandle,
    host: &str,
) -> Result<CommandResult, RunError> {
    // Normalised, so that no host is listed twice.
    let host =
        AllowlistEntry::parse(host).map_or_else(|_| host.to_owned(), |entry| entry.to_string());
    let opened = match gate {
        GateHandle::Open(gate) => gate.allow_host(&host),
        GateHandle::Missing | GateHandle::Closed => Ok(()),
    };
    if let Err(why) = opened {
        return Ok(CommandResult::failure(why));
    }
    if !journal.state().allowed_hosts.contains(&host) {
        journal.append(CommandEvent::HostAllowed { host: host.clone() })?;
    }
    let when = match gate {
        GateHandle::Open(_) => "from now on",
        GateHandle::Missing | GateHandle::Closed => "once it resumes",
    };
    Ok(CommandResult::success(format!(
        "commands can reach `{host}` {when}"
    )))
}

/// Puts budgets in force that the user set.
pub(crate) fn change_limits(
    journal: &mut Journal,
    change: &BudgetLimits,
) -> Result<CommandResult, RunError> {
    let limits = journal.state().limits.changed_by(change);
    let uses = budget::budget_uses(&limits, &journal.state().spent());
    let set: Vec<String> = uses
        .iter()
        .filter(|used| change.sets(used.budget))
        .map(|used| format!("`{}` is {} now", used.budget.key(), used.limit))
        .collect();
    journal.append(RunEvent::LimitsChanged { limits })?;
    Ok(CommandResult::success(set.join(", ")))
}

/// Queues a message for the agent or model.
pub(crate) fn queue_message(
    journal: &mut Journal,
    id: &str,
    text: &str,
) -> Result<CommandResult, RunError> {
    let is_known = |message: &ralph_core::state::Message| message.id == id;
    if !journal.state().messages.iter().any(is_known) {
        journal.append(CommandEvent::MessageMoved {
            id: id.to_owned(),
            text: text.to_owned(),
            to: MessageState::Queued,
        })?;
    }
    Ok(CommandResult::success("the message is queued"))
}

/// Queues an answer for the next session, together with the question.
pub(crate) fn queue_answer(
    journal: &mut Journal,
    id: &str,
    text: &str,
) -> Result<CommandResult, RunError> {
    let message = journal.state().answer_message(text);
    queue_message(journal, id, &message)?;
    Ok(CommandResult::success("the answer is queued"))
}

/// Allows the hosts that the user allowed earlier in the run.
pub(crate) fn restore_allowed_hosts(
    journal: &mut Journal,
    gate: &GateHandle,
) -> Result<(), RunError> {
    let GateHandle::Open(gate) = gate else {
        return Ok(());
    };
    let hosts: Vec<String> = journal.state().allowed_hosts.iter().cloned().collect();
    for host in hosts {
        if let Err(why) = gate.allow_host(&host) {
            let message = format!("`{host}` can no longer be reached: {why}");
            journal.append(RunEvent::Notice { message })?;
        }
    }
    Ok(())
}

/// What the recorded gate events mean for a running agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GateEventSummary {
    /// Whether a call was charged.
    pub(crate) charged: bool,
    /// The status with which the provider rejects the credential, if it does.
    pub(crate) refused_status: Option<u16>,
}

/// Records the pending events of the gate.
pub(crate) fn record_pending_gate_events(
    journal: &mut Journal,
    gate: &dyn GateControl,
) -> Result<GateEventSummary, RunError> {
    record_gate_events(journal, gate.drain_events())
}

/// Records events of the gate.
pub(crate) fn record_gate_events(
    journal: &mut Journal,
    events: Vec<GateEvent>,
) -> Result<GateEventSummary, RunError> {
    let mut summary = GateEventSummary::default();
    for gate_event in events {
        let iteration = journal.state().iteration;
        let event = match gate_event {
            GateEvent::Charged {
                model,
                usage,
                cost_usd,
            } => {
                summary.charged = true;
                Event::Agent(AgentSessionEvent::AgentCharged {
                    iteration,
                    model,
                    usage,
                    cost_usd,
                })
            }
            GateEvent::FurtherBlocked { count, examples } => {
                Event::Egress(EgressEvent::FurtherHostsBlocked { count, examples })
            }
            GateEvent::ProviderTool {
                provider,
                what,
                tool,
                action,
            } => {
                let screened = ScreenedTool {
                    action,
                    what,
                    provider,
                };
                match screened_event(journal.state(), screened, tool) {
                    Some(event) => event,
                    None => continue,
                }
            }
            GateEvent::Refused { status } => {
                summary.refused_status = Some(status);
                continue;
            }
            GateEvent::Blocked {
                host,
                port,
                reason,
                command,
            } => {
                // Repeated attempts to reach a host are reported once.
                if journal.state().is_blocked(&host, port) {
                    continue;
                }
                Event::Egress(EgressEvent::HostBlocked {
                    host,
                    port,
                    reason,
                    command,
                })
            }
        };
        journal.append(event)?;
    }
    Ok(summary)
}

/// Returns the event for a provider-side tool, unless the journal has it already.
fn screened_event(
    state: &RunState,
    screened: ScreenedTool,
    tool: Option<ProviderTool>,
) -> Option<Event> {
    let is_known = state.provider_tools.contains(&screened);
    (!is_known).then_some(Event::Egress(EgressEvent::ProviderToolScreened {
        provider: screened.provider,
        what: screened.what,
        tool,
        action: screened.action,
    }))
}

/// Records the pending events of the gate, and logs the results of immediate commands.
pub(crate) fn drain_gate_events(
    recorder: &mut Recorder,
    controls: &mut Controls,
) -> Result<(), RunError> {
    if let GateHandle::Open(gate) = &controls.gate {
        record_pending_gate_events(&mut recorder.journal, &**gate)?;
    }
    for TimedLine { at, text } in std::mem::take(&mut controls.unlogged) {
        recorder.log_activity_at(at, &text)?;
    }
    Ok(())
}

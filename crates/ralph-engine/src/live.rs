//! Answers people's calls, and does at once what must not wait for the end of an action: lets
//! commands reach a host, and queues messages. Writes down what the gate has to tell.

use ralph_core::event::{Event, MessageState};
use ralph_core::net::{Entry, ProviderTool};
use ralph_core::ports::{GateNews, Gatekeeper};
use ralph_core::run::Command;
use ralph_core::state::{RunState, ScreenedTool};

use crate::control::{Call, Control, Door};
use crate::errands::Done;
use crate::error::RunError;
use crate::journal::Journal;
use crate::mailbox::Letter;
use crate::run::Run;

/// Answers a person's call in the journal. A stop and an interrupt end the work at once.
pub(crate) fn answer(
    journal: &mut Journal,
    control: &mut Control,
    call: Call,
) -> Result<(), RunError> {
    let Call::Letter(letter) = call else {
        return Err(RunError::Interrupted);
    };
    let Letter { id, command } = letter.clone();
    if journal.state().last_letter.as_ref() == Some(&id) {
        // A restart came between the answer and the removal.
        control.answered(&letter);
        return Ok(());
    }
    let refused = journal.state().refuses(&command);
    let refused = refused.or_else(|| has_no_door(&control.door, &command));
    let accepted = refused.is_none();
    journal.append(Event::CommandReceived {
        id: id.clone(),
        command: command.clone(),
        refused,
    })?;
    control.answered(&letter);
    if accepted {
        control.note(&command);
        if let Some(done) = do_at_once(journal, &control.door, &id, &command)? {
            let told = format!("{}: {}", command.verb(), done.detail);
            control.untold.push(told);
        }
        if command == Command::Stop {
            return Err(RunError::Stopped);
        }
    }
    Ok(())
}

/// Returns why a command cannot be taken where the way out is like that.
pub(crate) fn has_no_door(door: &Door, command: &Command) -> Option<String> {
    match (door, command) {
        (Door::Missing, Command::AllowHost { .. }) => {
            Some("its sandbox has no way out that could be opened for a host".into())
        }
        (Door::Missing | Door::Kept(_) | Door::Closed, _) => None,
    }
}

/// Does what a command asks for and tells it, if that needs nothing but the journal and the gate.
pub(crate) fn do_at_once(
    journal: &mut Journal,
    door: &Door,
    id: &str,
    command: &Command,
) -> Result<Option<Done>, RunError> {
    let done = match command {
        Command::AllowHost { host } => allow(journal, door, host)?,
        Command::Message { text } => queue(journal, id, text)?,
        Command::Pause
        | Command::Resume
        | Command::Rotate
        | Command::Stop
        | Command::Profile { .. }
        | Command::Task { .. }
        | Command::Note(_)
        | Command::Guardrail(_)
        | Command::Diagnose
        | Command::Apply
        | Command::Debug { .. } => return Ok(None),
    };
    journal.append(Event::CommandDone {
        id: id.to_owned(),
        done: done.done,
        detail: done.detail.clone(),
        output: done.output.clone(),
    })?;
    Ok(Some(done))
}

/// Lets commands reach a host from now on.
pub(crate) fn allow(journal: &mut Journal, door: &Door, host: &str) -> Result<Done, RunError> {
    // One spelling for each host, so that none is listed twice.
    let host = Entry::parse(host).map_or_else(|_| host.to_owned(), |entry| entry.to_string());
    let opened = match door {
        Door::Kept(gate) => gate.allow_host(&host),
        Door::Missing | Door::Closed => Ok(()),
    };
    if let Err(why) = opened {
        return Ok(Done::not(why));
    }
    if !journal.state().allowed_hosts.contains(&host) {
        journal.append(Event::HostAllowed { host: host.clone() })?;
    }
    let when = match door {
        Door::Kept(_) => "from now on",
        Door::Missing | Door::Closed => "when it goes on",
    };
    Ok(Done::well(format!("commands can reach `{host}` {when}")))
}

/// Queues a message for who does the work.
pub(crate) fn queue(journal: &mut Journal, id: &str, text: &str) -> Result<Done, RunError> {
    let is_known = |message: &ralph_core::state::Message| message.id == id;
    if !journal.state().messages.iter().any(is_known) {
        journal.append(Event::MessageMoved {
            id: id.to_owned(),
            text: text.to_owned(),
            to: MessageState::Queued,
        })?;
    }
    Ok(Done::well("the message waits to be taken up"))
}

/// Lets commands reach the hosts that people have allowed before.
pub(crate) fn reopen(journal: &mut Journal, door: &Door) -> Result<(), RunError> {
    let Door::Kept(gate) = door else {
        return Ok(());
    };
    let hosts: Vec<String> = journal.state().allowed_hosts.iter().cloned().collect();
    for host in hosts {
        if let Err(why) = gate.allow_host(&host) {
            let message = format!("`{host}` cannot be reached any more: {why}");
            journal.append(Event::Notice { message })?;
        }
    }
    Ok(())
}

/// What was heard from a gate besides what is written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Whether anything was paid for.
    pub(crate) is_paid: bool,
    /// The status by which the provider refuses the credential, if it does.
    pub(crate) refused: Option<u16>,
}

/// Writes down what happened at the gate.
pub(crate) fn take_news(journal: &mut Journal, gate: &dyn Gatekeeper) -> Result<Heard, RunError> {
    write_down(journal, gate.news())
}

/// Writes down news of a gate.
pub(crate) fn write_down(journal: &mut Journal, all: Vec<GateNews>) -> Result<Heard, RunError> {
    let mut heard = Heard::default();
    for news in all {
        let iteration = journal.state().iteration;
        let event = match news {
            GateNews::Charged {
                model,
                usage,
                cost_usd,
            } => {
                heard.is_paid = true;
                Event::AgentCharged {
                    iteration,
                    model,
                    usage,
                    cost_usd,
                }
            }
            GateNews::FurtherBlocked { count, examples } => {
                Event::FurtherHostsBlocked { count, examples }
            }
            GateNews::ProviderTool {
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
            GateNews::Refused { status } => {
                heard.refused = Some(status);
                continue;
            }
            GateNews::Blocked {
                host,
                port,
                reason,
                command,
            } => {
                // A program that tries again and again is told about once.
                if journal.state().is_blocked(&host, port) {
                    continue;
                }
                Event::HostBlocked {
                    host,
                    port,
                    reason,
                    command,
                }
            }
        };
        journal.append(event)?;
    }
    Ok(heard)
}

/// Returns the event for a provider-side tool, unless the journal has it already.
fn screened_event(
    state: &RunState,
    screened: ScreenedTool,
    tool: Option<ProviderTool>,
) -> Option<Event> {
    let is_known = state.provider_tools.contains(&screened);
    (!is_known).then_some(Event::ProviderToolScreened {
        provider: screened.provider,
        what: screened.what,
        tool,
        action: screened.action,
    })
}

impl Run {
    /// Writes down what happened at the gate, and what was done at once.
    pub(crate) fn hear_gate(&mut self) -> Result<(), RunError> {
        if let Door::Kept(gate) = &self.control.door {
            take_news(&mut self.journal, &**gate)?;
        }
        for text in std::mem::take(&mut self.control.untold) {
            self.log_activity(&text)?;
        }
        Ok(())
    }
}

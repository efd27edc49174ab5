//! Listens to an agent while it works: to what it prints, to the gate, to people, to the clock.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::event::Event;
use ralph_core::ports::{
    Agent, AgentEvent, Clock, Exec, ExecOutcome, Gatekeeper, Patience, SandboxError,
};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::MissedTickBehavior;

use super::sink::{AgentSink, Pulse};
use super::talk::Talk;
use crate::error::RunError;
use crate::journal::Journal;
use crate::live::{Heard, answer, take_news};
use crate::run::{Run, heartbeat};

/// How often the gate and the clock are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long the gate may read on the answers of calls whose agent has ended, to learn what they cost.
const LAST_CALLS: Duration = Duration::from_secs(5);
/// How long it may take to charge them by their reservation after that.
const LAST_CHARGES: Duration = Duration::from_secs(2);
/// How often open calls are counted.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Why an agent was not left to end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Nothing came from it for too long.
    Stalled,
    /// It said its last word, but its process did not end.
    Lingering,
    /// A person wants something else.
    Halted,
    /// The provider refuses its credential with this status, and it tries again and again.
    Refused(u16),
}

/// How watching ended.
pub(super) enum Watched {
    /// The process ended, or could not go on.
    Ended(Result<ExecOutcome, SandboxError>),
    /// It was ended by us.
    Cut(Cut),
}

impl Run {
    /// Runs the program and listens until it ends. A stop, a pause and a rotation end its whole tree.
    pub(super) async fn watch(
        &mut self,
        agent: &dyn Agent,
        exec: Exec,
        sink: &mut AgentSink,
        (pulse, mut events): (Arc<Pulse>, UnboundedReceiver<AgentEvent>),
    ) -> Result<Watched, RunError> {
        let patience = agent.patience();
        let gate = self.outside.gate.clone();
        if let Some(gate) = &gate {
            gate.notice_command(Some(agent.name()));
        }
        let (talk, mut input) = Talk::begin(agent, &self.outside.redactor, &pulse);
        let mut beat = heartbeat();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut done_at = None;
        let clock = self.outside.clock.clone();
        let (journal, control) = (&mut self.journal, &mut self.control);
        let watched = {
            let mut running = self.sandbox.converse(exec, &mut input, sink);
            loop {
                tokio::select! {
                    ended = &mut running => break Ok(Watched::Ended(ended)),
                    Some(did) = events.recv() => {
                        notice(gate.as_deref(), &did);
                        tell(journal, &talk, did)?;
                    }
                    call = control.next() => match answer(journal, control, call) {
                        Ok(()) if control.wish.is_some() => break Ok(Watched::Cut(Cut::Halted)),
                        Ok(()) => {}
                        Err(error) => break Err(error),
                    },
                    _ = beat.tick() => drop(journal.append(Event::StillActive {})?),
                    _ = look.tick() => {
                        journal.check_owner()?;
                        journal.report_absence()?;
                        let heard = match &gate {
                            Some(gate) => take_news(journal, &**gate)?,
                            None => Heard::default(),
                        };
                        if heard.is_paid {
                            pulse.beat();
                        }
                        if let Some(status) = heard.refused {
                            break Ok(Watched::Cut(Cut::Refused(status)));
                        }
                        talk.say_what_waits(journal)?;
                        if let Some(cut) = overdue(&*clock, &pulse, patience, &mut done_at) {
                            break Ok(Watched::Cut(cut));
                        }
                    }
                }
            }
        };
        // What it did until then is told and charged, however it ended.
        sink.end();
        while let Ok(did) = events.try_recv() {
            tell(journal, &talk, did)?;
        }
        if let Some(gate) = &gate {
            until_paid(&**gate).await;
            take_news(journal, &**gate)?;
            gate.notice_command(None);
        }
        watched
    }
}

/// Waits until calls that an ended agent has left behind are charged: by the provider's count if that
/// arrives soon, or else by their reservation.
async fn until_paid(gate: &dyn Gatekeeper) {
    if !is_paid_within(gate, LAST_CALLS).await {
        gate.settle_open_calls();
        is_paid_within(gate, LAST_CHARGES).await;
    }
}

async fn is_paid_within(gate: &dyn Gatekeeper, limit: Duration) -> bool {
    let begun = tokio::time::Instant::now();
    while gate.owes() {
        if begun.elapsed() >= limit {
            return false;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    true
}

/// Makes the channel that a sink sends its events through.
pub(super) fn channel() -> (
    mpsc::UnboundedSender<AgentEvent>,
    UnboundedReceiver<AgentEvent>,
) {
    mpsc::unbounded_channel()
}

fn overdue(
    clock: &dyn Clock,
    pulse: &Pulse,
    patience: Patience,
    done_at: &mut Option<Duration>,
) -> Option<Cut> {
    if pulse.is_done() {
        let now = clock.monotonic();
        let since = *done_at.get_or_insert(now);
        return (now.saturating_sub(since) > patience.after).then_some(Cut::Lingering);
    }
    *done_at = None;
    let (silence, has_begun) = pulse.silence();
    let limit = if has_begun {
        patience.idle
    } else {
        patience.first
    };
    (silence > limit).then_some(Cut::Stalled)
}

/// Tells the gate what the agent does, so that a blocked host is told with it.
fn notice(gate: Option<&dyn Gatekeeper>, did: &AgentEvent) {
    if let (Some(gate), AgentEvent::Tool { tool, label, .. }) = (gate, did) {
        gate.notice_command(Some(&format!("{tool}: {label}")));
    }
}

fn tell(journal: &mut Journal, talk: &Talk<'_>, did: AgentEvent) -> Result<(), RunError> {
    let iteration = journal.state().iteration;
    let taken_up = match &did {
        AgentEvent::Acknowledged { text } => Some(text.clone()),
        AgentEvent::Started { .. }
        | AgentEvent::Text { .. }
        | AgentEvent::Tool { .. }
        | AgentEvent::ToolDone { .. }
        | AgentEvent::Usage { .. }
        | AgentEvent::Waiting { .. } => None,
    };
    journal.append(Event::AgentDid { iteration, did })?;
    taken_up.map_or(Ok(()), |text| talk.hear(journal, &text))
}

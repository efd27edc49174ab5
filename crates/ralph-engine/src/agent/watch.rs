//! Watches an agent while it works: its output, the gate, user commands and timeouts.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::event::{AgentSessionEvent, RunEvent};
use ralph_core::ports::{
    Agent, AgentEvent, AgentTimeouts, Clock, Exec, ExecOutcome, GateControl, Sandbox, SandboxError,
};
use ralph_core::task::RunMode;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::MissedTickBehavior;

use super::frozen::{FREEZE_LIMIT, FreezeEnd, hold_frozen};
use super::messenger::AgentMessenger;
use super::sink::{AgentActivity, AgentSink};
use crate::controls::{ControlEvent, Controls, PendingRequest};
use crate::error::RunError;
use crate::immediate_commands::{
    GateEventSummary, handle_control_event, record_pending_gate_events,
};
use crate::journal::Journal;
use crate::recorder::Recorder;
use crate::run::heartbeat;
use crate::workbench::Workbench;

/// How often the gate and the timeouts are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long the gate may read the remaining responses after the agent has ended, to record their
/// cost.
const OPEN_CALLS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to charge the remaining calls by their reservation.
const RESERVATION_TIMEOUT: Duration = Duration::from_secs(2);
/// How often open calls are counted.
const OPEN_CALLS_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Why an agent was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutReason {
    /// No output for too long.
    Stalled,
    /// It reported its end, but its process did not exit.
    Lingering,
    /// The user requested something else.
    Halted,
    /// The provider rejects its credential with this status, and the agent keeps retrying.
    Refused(u16),
}

/// How watching ended.
pub(super) enum WatchOutcome {
    /// The process ended or failed.
    Ended(Result<ExecOutcome, SandboxError>),
    /// The run stopped it.
    Cut(CutReason),
}

/// Runs the program and observes it until it ends. A stop and a rotation end its whole process tree,
/// and so does a pause in a sandbox that cannot be frozen.
pub(super) async fn watch_agent(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    agent: &dyn Agent,
    exec: Exec,
    sink: &mut AgentSink,
    (activity, mut events): (Arc<AgentActivity>, UnboundedReceiver<AgentEvent>),
) -> Result<WatchOutcome, RunError> {
    let timeouts = agent.timeouts();
    let gate = controls.open_gate().cloned();
    if let Some(gate) = &gate {
        gate.set_running_command(Some(agent.name()));
    }
    let (messenger, mut input) = AgentMessenger::new(agent, &recorder.redactor, &activity);
    let mut heartbeat_timer = heartbeat();
    let mut poll_timer = tokio::time::interval(POLL_INTERVAL);
    poll_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut done_at = None;
    let clock = recorder.clock.clone();
    let (journal, control) = (&mut recorder.journal, controls);
    let watched = {
        let mut running = bench.sandbox.exec(exec, Some(&mut input), sink);
        loop {
            tokio::select! {
                ended = &mut running => break Ok(WatchOutcome::Ended(ended)),
                Some(event) = events.recv() => {
                    report_to_gate(gate.as_deref(), &event);
                    record_agent_event(journal, &messenger, event)?;
                }
                event = control.next() => {
                    if let Some(cut) = respond(journal, control, event, (&*bench.sandbox, &*activity, &*clock)).await.transpose() {
                        break cut.map(WatchOutcome::Cut);
                    }
                }
                _ = heartbeat_timer.tick() => drop(journal.append(RunEvent::StillActive {})?),
                _ = poll_timer.tick() => {
                    journal.check_owner()?;
                    journal.report_suspension()?;
                    if let Some(cut) = poll_gate(journal, gate.as_deref(), &activity)? {
                        break Ok(WatchOutcome::Cut(cut));
                    }
                    messenger.send_queued(journal)?;
                    if let Some(cut) = timeout_reason(&*clock, &activity, timeouts, &mut done_at) {
                        break Ok(WatchOutcome::Cut(cut));
                    }
                }
            }
        }
    };
    // Record and charge the remaining events, however the session ended.
    sink.flush();
    while let Ok(event) = events.try_recv() {
        record_agent_event(journal, &messenger, event)?;
    }
    if let Some(gate) = &gate {
        wait_until_charged(&**gate).await;
        record_pending_gate_events(journal, &**gate)?;
        gate.set_running_command(None);
    }
    watched
}

/// Records the events of the gate. Returns why the agent must stop, if the gate refused a request.
fn poll_gate(
    journal: &mut Journal,
    gate: Option<&dyn GateControl>,
    activity: &AgentActivity,
) -> Result<Option<CutReason>, RunError> {
    let events = match gate {
        Some(gate) => record_pending_gate_events(journal, gate)?,
        None => GateEventSummary::default(),
    };
    if events.charged {
        activity.record_activity();
    }
    Ok(events.refused_status.map(CutReason::Refused))
}

/// Handles a user command. Returns why the agent must stop, if it must.
async fn respond(
    journal: &mut Journal,
    control: &mut Controls,
    event: ControlEvent,
    (sandbox, activity, clock): (&dyn Sandbox, &AgentActivity, &dyn Clock),
) -> Result<Option<CutReason>, RunError> {
    handle_control_event(journal, control, event)?;
    // A command of the mode `debug` needs a sandbox that works.
    let is_debug = journal.state().mode == RunMode::Debug;
    let freezer = sandbox.freezer().filter(|_| !is_debug);
    match (control.pending, freezer) {
        (None, _) => Ok(None),
        (Some(PendingRequest::Pause), Some(freezer)) => {
            let paused = clock.monotonic();
            let held = hold_frozen(journal, control, freezer, (clock, FREEZE_LIMIT)).await;
            activity.add_frozen(clock.monotonic().saturating_sub(paused));
            Ok(match held? {
                FreezeEnd::Resumed => None,
                FreezeEnd::Expired => Some(CutReason::Halted),
            })
        }
        (Some(PendingRequest::Pause | PendingRequest::Rotate), _) => Ok(Some(CutReason::Halted)),
    }
}

/// Waits until the calls of an ended agent are charged: by the provider's count if that arrives
/// soon, or else by their reservation.
async fn wait_until_charged(gate: &dyn GateControl) {
    if !is_charged_within(gate, OPEN_CALLS_TIMEOUT).await {
        gate.settle_open_calls();
        is_charged_within(gate, RESERVATION_TIMEOUT).await;
    }
}

async fn is_charged_within(gate: &dyn GateControl, limit: Duration) -> bool {
    let started = tokio::time::Instant::now();
    while gate.has_unsettled_calls() {
        if started.elapsed() >= limit {
            return false;
        }
        tokio::time::sleep(OPEN_CALLS_POLL_INTERVAL).await;
    }
    true
}

/// Creates the channel through which a sink sends its events.
pub(super) fn event_channel() -> (
    mpsc::UnboundedSender<AgentEvent>,
    UnboundedReceiver<AgentEvent>,
) {
    mpsc::unbounded_channel()
}

fn timeout_reason(
    clock: &dyn Clock,
    activity: &AgentActivity,
    timeouts: AgentTimeouts,
    done_at: &mut Option<Duration>,
) -> Option<CutReason> {
    if activity.is_done() {
        let now = clock.monotonic();
        let since = *done_at.get_or_insert(now);
        return (now.saturating_sub(since) > timeouts.after_done).then_some(CutReason::Lingering);
    }
    *done_at = None;
    let (silence, has_output) = activity.silence();
    let limit = if has_output {
        timeouts.idle
    } else {
        timeouts.first_output
    };
    (silence > limit).then_some(CutReason::Stalled)
}

/// Reports the running tool to the gate, which names it with a blocked host.
fn report_to_gate(gate: Option<&dyn GateControl>, event: &AgentEvent) {
    if let (Some(gate), AgentEvent::Tool { tool, label, .. }) = (gate, event) {
        gate.set_running_command(Some(&format!("{tool}: {label}")));
    }
}

fn record_agent_event(
    journal: &mut Journal,
    messenger: &AgentMessenger<'_>,
    event: AgentEvent,
) -> Result<(), RunError> {
    let iteration = journal.state().iteration;
    let acknowledged = match &event {
        AgentEvent::Acknowledged { text } => Some(text.clone()),
        AgentEvent::Started { .. }
        | AgentEvent::Text { .. }
        | AgentEvent::Tool { .. }
        | AgentEvent::ToolDone { .. }
        | AgentEvent::Usage { .. }
        | AgentEvent::Waiting { .. } => None,
    };
    journal.append(AgentSessionEvent::AgentDid {
        iteration,
        did: event,
    })?;
    acknowledged.map_or(Ok(()), |text| {
        messenger.record_acknowledgement(journal, &text)
    })
}

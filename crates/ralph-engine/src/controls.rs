//! Receives user commands from the mailbox, and the signal that ends the program.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::GateControl;
use ralph_core::run::Command;
use ralph_core::state::RunState;
use tokio::sync::watch;

use crate::mailbox::{CommandFile, Mailbox};
use crate::worker_pool::WorkerSlot;

const POLL_INTERVAL: Duration = Duration::from_millis(150);

/// A request of the user that takes effect at the next action boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingRequest {
    /// Wait.
    Pause,
    /// Start a fresh iteration.
    Rotate,
}

/// A line of the activity log that is written later than it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimedLine {
    pub(crate) at: jiff::Timestamp,
    pub(crate) text: String,
}

/// The gate between a run's sandbox and the network, for commands that allow a host.
#[derive(Clone)]
pub(crate) enum GateHandle {
    /// The gate is open: an allowed host is reachable immediately.
    Open(Arc<dyn GateControl>),
    /// The run has no gate.
    Missing,
    /// No process works on the run; the next one opens the gate.
    Closed,
}

/// Receives user commands and the interrupt signal.
pub(crate) struct Controls {
    mailbox: Mailbox,
    interrupt: watch::Receiver<bool>,
    pub(crate) gate: GateHandle,
    /// The run's place among the runs of its process, if their number is limited.
    pub(crate) worker: Option<Arc<WorkerSlot>>,
    /// Results of immediate commands that are not in the activity log yet.
    pub(crate) unlogged: Vec<TimedLine>,
    pub(crate) pending: Option<PendingRequest>,
    /// Whether the user resumed the run since this was last set to false.
    pub(crate) resumed: bool,
}

/// A command or signal of the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ControlEvent {
    /// A command arrived.
    Command(CommandFile),
    /// The program was asked to end.
    Interrupt,
}

impl Controls {
    pub(crate) fn new(
        mailbox: Mailbox,
        interrupt: watch::Receiver<bool>,
        gate: GateHandle,
    ) -> Self {
        Self {
            mailbox,
            interrupt,
            gate,
            worker: None,
            unlogged: Vec::new(),
            pending: None,
            resumed: false,
        }
    }

    /// Adds the run's place among the runs of its process.
    #[must_use]
    pub(crate) fn with_worker(mut self, worker: Option<Arc<WorkerSlot>>) -> Self {
        self.worker = worker;
        self
    }

    /// Returns the gate that commands of the run connect through, if it is open.
    pub(crate) fn open_gate(&self) -> Option<&Arc<dyn GateControl>> {
        match &self.gate {
            GateHandle::Open(gate) => Some(gate),
            GateHandle::Missing | GateHandle::Closed => None,
        }
    }

    /// Returns the next event, without waiting.
    pub(crate) fn poll(&self) -> Option<ControlEvent> {
        if *self.interrupt.borrow() {
            return Some(ControlEvent::Interrupt);
        }
        self.mailbox.next().map(ControlEvent::Command)
    }

    /// Waits for the next event. Cancel-safe.
    pub(crate) async fn next(&self) -> ControlEvent {
        let mut interrupt = self.interrupt.clone();
        loop {
            if let Some(event) = self.poll() {
                return event;
            }
            // A dropped sender can never interrupt, so only the mailbox is left.
            let signalled = interrupt.changed();
            if tokio::time::timeout(POLL_INTERVAL, signalled)
                .await
                .is_ok_and(|changed| changed.is_err())
            {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    /// How often a run reports that it still works on something.
    pub(crate) const HEARTBEAT: Duration = Duration::from_secs(30);

    /// Removes the file of a command whose response is in the journal.
    pub(crate) fn discard(&self, file: &CommandFile) {
        self.mailbox.discard(&file.id);
    }

    /// Drops a request for a fresh iteration if one starts anyway.
    pub(crate) fn forget_rotation_between_iterations(&mut self, state: &RunState) {
        if state.open.is_none() && self.pending == Some(PendingRequest::Rotate) {
            self.pending = None;
        }
    }

    /// Records the request for the next boundary.
    pub(crate) fn apply(&mut self, command: &Command) {
        match command {
            Command::Pause => self.pending = Some(PendingRequest::Pause),
            Command::Rotate => self.pending = Some(PendingRequest::Rotate),
            Command::Resume | Command::Answer { .. } => {
                self.pending = None;
                self.resumed = true;
            }
            // The journal's state contains the profile and the doctor requests, so that they
            // survive a restart.
            Command::Stop
            | Command::Profile { .. }
            | Command::Task { .. }
            | Command::Note(_)
            | Command::Guardrail(_)
            | Command::Diagnose
            | Command::Apply
            | Command::Debug { .. }
            | Command::AllowHost { .. }
            | Command::Message { .. }
            | Command::Mode { .. }
            | Command::Edit(_)
            | Command::Limits(_) => {}
        }
    }
}

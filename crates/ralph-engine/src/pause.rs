//! The place between two actions, and standing still there until a person says to go on.

use ralph_core::run::{PauseReason, RunStatus};

use crate::control::PendingRequest;
use crate::error::RunError;
use crate::immediate_commands::handle_control_event;
use crate::run::Run;

impl Run {
    /// The place between two actions: here people's wishes take effect.
    pub(crate) async fn handle_pending_input(&mut self) -> Result<(), RunError> {
        while let Some(call) = self.control.poll() {
            handle_control_event(&mut self.journal, &mut self.control, call)?;
        }
        self.drain_gate_events()?;
        if self.control.pending == Some(PendingRequest::Pause) {
            self.wait_for_resume().await?;
        }
        self.run_pending_commands().await
    }

    /// Waits until a person says to go on, and looks at the sandbox before that happens.
    async fn wait_for_resume(&mut self) -> Result<(), RunError> {
        let before = self.state().status.clone();
        self.log_activity("paused by a person")?;
        self.files.sync()?;
        self.set_status(RunStatus::Paused(PauseReason::Person))?;
        while self.control.pending == Some(PendingRequest::Pause) {
            let call = self.control.next().await;
            handle_control_event(&mut self.journal, &mut self.control, call)?;
            self.run_pending_commands().await?;
        }
        self.log_activity("resumed by a person")?;
        self.set_status(before)?;
        self.check_sandbox().await
    }
}

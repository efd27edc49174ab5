//! The place between two actions, and standing still there until a person says to go on.

use ralph_core::run::{PauseReason, RunStatus};

use crate::control::Wish;
use crate::error::RunError;
use crate::live::answer;
use crate::run::Run;

impl Run {
    /// The place between two actions: here people's wishes take effect.
    pub(crate) async fn boundary(&mut self) -> Result<(), RunError> {
        while let Some(call) = self.control.poll() {
            answer(&mut self.journal, &mut self.control, call)?;
        }
        self.hear_gate()?;
        if self.control.wish == Some(Wish::Pause) {
            self.wait_for_person().await?;
        }
        self.run_errands().await
    }

    /// Waits until a person says to go on, and looks at the sandbox before that happens.
    async fn wait_for_person(&mut self) -> Result<(), RunError> {
        let before = self.state().status.clone();
        self.log_activity("paused by a person")?;
        self.files.sync()?;
        self.set_status(RunStatus::Paused(PauseReason::Person))?;
        while self.control.wish == Some(Wish::Pause) {
            let call = self.control.next().await;
            answer(&mut self.journal, &mut self.control, call)?;
            self.run_errands().await?;
        }
        self.log_activity("resumed by a person")?;
        self.set_status(before)?;
        self.check_sandbox().await
    }
}

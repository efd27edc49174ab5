//! The end of a process's work on a run: the rest is delivered, the files are saved, the status recorded.

use ralph_core::event::Event;
use ralph_core::run::RunStatus;

use crate::error::RunError;
use crate::run::Run;

impl Run {
    /// Ends the work of this process on the run: delivers the rest, tidies up, records the status.
    pub(crate) async fn end(&mut self, status: RunStatus) -> Result<RunStatus, RunError> {
        let line = status.reason().map_or_else(
            || status.word().to_owned(),
            |why| format!("{}: {why}", status.word()),
        );
        self.log_activity(&line)?;
        self.files.sync()?;
        self.deliver_rest().await?;
        if status == RunStatus::Succeeded {
            // After a restart it stands at running, and success only follows a verification.
            self.set_status(RunStatus::Verifying)?;
        }
        // What is said about the run is decided; tidying up cannot change it.
        if let Err(error) = self.tidy_up(&status).await {
            let message = format!("not everything could be tidied up: {error}");
            self.journal.append(Event::Notice { message })?;
        }
        self.set_status(status.clone())?;
        Ok(status)
    }

    async fn tidy_up(&mut self, status: &RunStatus) -> Result<(), RunError> {
        let sandbox = &*self.sandbox;
        let findings = self
            .workspace
            .compare_old_iterations(sandbox, &self.dir)
            .await?;
        self.tell_tampering(findings)?;
        self.workspace.project(&*self.sandbox, &self.files).await?;
        self.save_state().await?;
        if *status == RunStatus::Succeeded {
            // The record first: half a sandbox must not be taken for the workspace after a crash. One
            // that no record knows is removed at the next opening.
            let sandbox = self.sandbox.id().clone();
            self.journal.append(Event::SandboxRemoved { sandbox })?;
            self.sandbox.remove().await?;
        }
        Ok(())
    }
}

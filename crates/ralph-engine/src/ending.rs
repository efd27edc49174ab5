//! The end of a process's work on a run: the rest is delivered, the files are saved, the status recorded.

use ralph_core::event::{RunEvent, SandboxEvent};
use ralph_core::run::RunStatus;

use crate::error::RunError;
use crate::file_digests;
use crate::journal::Journal;
use crate::run::Run;
use crate::store::RunDir;

/// Writes down how a run stands after an error.
pub(crate) fn record_failure_status(
    dir: &RunDir,
    journal: &mut Journal,
    error: &RunError,
) -> Result<RunStatus, RunError> {
    let status = match error {
        RunError::Stopped => RunStatus::Stopped,
        RunError::Interrupted
        | RunError::Store(_)
        | RunError::Journal(_)
        | RunError::Sandbox(_)
        | RunError::Git(_)
        | RunError::Scm(_)
        | RunError::Model(_)
        | RunError::Outage { .. }
        | RunError::UnusableSandbox(_)
        | RunError::CrashLoop(_)
        | RunError::Contract(_) => RunStatus::Paused(error.pause_reason()),
    };
    record_final_status(dir, journal, &status)?;
    Ok(status)
}

/// Records the run's files as a process leaves them, and then the status in which it leaves the run.
fn record_final_status(
    dir: &RunDir,
    journal: &mut Journal,
    status: &RunStatus,
) -> Result<(), RunError> {
    if let Some(recorded) = file_digests::files_event(dir, journal.state()) {
        // A nearly full disk may still have room for the status.
        journal.append(recorded).ok();
    }
    journal.append(RunEvent::StatusChanged {
        status: status.clone(),
    })?;
    Ok(())
}

impl Run {
    /// Ends the work of this process on the run: delivers the rest, tidies up, records the status.
    pub(crate) async fn finish_with(&mut self, status: RunStatus) -> Result<RunStatus, RunError> {
        let line = status.reason().map_or_else(
            || status.as_str().to_owned(),
            |why| format!("{}: {why}", status.as_str()),
        );
        self.log_activity(&line)?;
        self.files.sync()?;
        self.deliver_remaining().await?;
        if status == RunStatus::Succeeded {
            // After a restart it stands at running, and success only follows a verification.
            self.set_status(RunStatus::Verifying)?;
        }
        // What is said about the run is decided; tidying up cannot change it.
        if let Err(error) = self.clean_up_sandbox(&status).await {
            let message = format!("not everything could be tidied up: {error}");
            self.journal.append(RunEvent::Notice { message })?;
        }
        record_final_status(&self.dir, &mut self.journal, &status)?;
        Ok(status)
    }

    async fn clean_up_sandbox(&mut self, status: &RunStatus) -> Result<(), RunError> {
        let sandbox = &*self.sandbox;
        let findings = self
            .workspace
            .compare_old_iterations(sandbox, &self.dir)
            .await?;
        self.record_tampering(findings)?;
        self.workspace.project(&*self.sandbox, &self.files).await?;
        self.save_state().await?;
        if *status == RunStatus::Succeeded {
            // The record first: half a sandbox must not be taken for the workspace after a crash. One
            // that no record knows is removed at the next opening.
            let sandbox = self.sandbox.id().clone();
            self.journal
                .append(SandboxEvent::SandboxRemoved { sandbox })?;
            self.sandbox.remove().await?;
        }
        Ok(())
    }
}

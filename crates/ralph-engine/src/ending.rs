//! The end of a process's work on a run: delivers the rest, saves the files, records the status.

use ralph_core::event::{RunEvent, SandboxEvent};
use ralph_core::run::{PauseReason, RunStatus};

use crate::delivery::{deliver_remaining, save_state};
use crate::durable;
use crate::error::RunError;
use crate::file_digests;
use crate::journal::Journal;
use crate::recorder::Recorder;
use crate::run::Run;
use crate::services::Services;
use crate::store::RunDir;
use crate::workbench::Workbench;

/// Pauses a run for a reason that the thread of the run could not record.
pub fn pause_idle_run(
    dir: &RunDir,
    mut journal: Journal,
    reason: PauseReason,
) -> Result<RunStatus, RunError> {
    let status = RunStatus::Paused(reason);
    record_final_status(dir, &mut journal, &status)?;
    Ok(status)
}

/// Records the status of a run after an error.
pub(crate) fn record_failure_status(
    dir: &RunDir,
    journal: &mut Journal,
    error: &RunError,
) -> Result<RunStatus, RunError> {
    let status = match error {
        RunError::Stopped => RunStatus::Stopped,
        RunError::Interrupted
        | RunError::Paused
        | RunError::Store(_)
        | RunError::Journal(_)
        | RunError::Sandbox(_)
        | RunError::Git(_)
        | RunError::Scm(_)
        | RunError::HostOutage { .. }
        | RunError::Model(_)
        | RunError::Outage { .. }
        | RunError::UnusableSandbox(_)
        | RunError::CrashLoop(_)
        | RunError::OpeningCrashes { .. }
        | RunError::Thread(_)
        | RunError::Contract(_) => RunStatus::Paused(error.pause_reason()),
    };
    record_final_status(dir, journal, &status)?;
    Ok(status)
}

/// Records the run's files and then the status that the process leaves the run in.
fn record_final_status(
    dir: &RunDir,
    journal: &mut Journal,
    status: &RunStatus,
) -> Result<(), RunError> {
    if let Some(recorded) = file_digests::files_event(dir, journal.state()) {
        // A nearly full disk may still have room for the status.
        durable::warn_if_failed("record the files of the run", journal.append(recorded));
    }
    journal.append(RunEvent::StatusChanged {
        status: status.clone(),
    })?;
    Ok(())
}

/// Ends the work of this process on the run: delivers the rest, cleans up, records the status.
pub(crate) async fn finish_with(run: &mut Run, status: RunStatus) -> Result<RunStatus, RunError> {
    let line = status.reason().map_or_else(
        || status.as_str().to_owned(),
        |why| format!("{}: {why}", status.as_str()),
    );
    run.recorder.log_activity(&line)?;
    run.recorder.files.sync()?;
    deliver_remaining(run).await?;
    let Run {
        recorder,
        bench,
        services,
        ..
    } = run;
    if status == RunStatus::Succeeded {
        // After a restart the status is `running`, and only a verifying run may succeed.
        recorder.set_status(RunStatus::Verifying)?;
    }
    // The status is decided; the cleanup cannot change it.
    if let Err(error) = clean_up_sandbox(recorder, bench, services, &status).await {
        let message = format!("the cleanup is incomplete: {error}");
        recorder.append(RunEvent::Notice { message })?;
    }
    record_final_status(&recorder.dir, &mut recorder.journal, &status)?;
    Ok(status)
}

async fn clean_up_sandbox(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    services: &Services,
    status: &RunStatus,
) -> Result<(), RunError> {
    let sandbox = &*bench.sandbox;
    let findings = bench
        .workspace
        .compare_old_iterations(sandbox, &recorder.dir)
        .await?;
    recorder.record_tampering(findings)?;
    bench.project(&recorder.files).await?;
    save_state(recorder, bench, services, status).await?;
    if *status == RunStatus::Succeeded {
        // Record it first: after a crash, a partly removed sandbox must not be used as the
        // workspace. The next process that opens the run removes a sandbox without a record.
        let sandbox = bench.sandbox.id().clone();
        recorder.append(SandboxEvent::SandboxRemoved { sandbox })?;
        bench.sandbox.remove().await?;
    }
    Ok(())
}

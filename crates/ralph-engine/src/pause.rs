//! Handles user requests between two actions, and waits there while the run is paused.

use ralph_core::run::{PauseReason, RunStatus};

use crate::controls::PendingRequest;
use crate::error::RunError;
use crate::immediate_commands::drain_gate_events;
use crate::immediate_commands::handle_control_event;
use crate::preflight::check_sandbox;
use crate::run::Run;
use crate::user_commands::run_pending_commands;
use crate::worker_wait::enter_status;

/// Applies the requests of the user between two actions.
pub(crate) async fn handle_pending_input(run: &mut Run) -> Result<(), RunError> {
    while let Some(event) = run.controls.poll() {
        handle_control_event(&mut run.recorder.journal, &mut run.controls, event)?;
    }
    drain_gate_events(&mut run.recorder, &mut run.controls)?;
    if run.controls.pending == Some(PendingRequest::Pause) {
        wait_for_resume(run).await?;
    }
    run_pending_commands(run).await
}

/// Waits until the user resumes the run, and checks the sandbox before it continues.
async fn wait_for_resume(run: &mut Run) -> Result<(), RunError> {
    let before = run.recorder.state().status.clone();
    run.recorder.log_activity("paused by the user")?;
    run.recorder.files.sync()?;
    let paused = RunStatus::Paused(PauseReason::Person);
    enter_status(&mut run.recorder.journal, &mut run.controls, paused).await?;
    while run.controls.pending == Some(PendingRequest::Pause) {
        let event = run.controls.next().await;
        handle_control_event(&mut run.recorder.journal, &mut run.controls, event)?;
        run_pending_commands(run).await?;
    }
    run.recorder.log_activity("resumed by the user")?;
    enter_status(&mut run.recorder.journal, &mut run.controls, before).await?;
    check_sandbox(&mut run.recorder, &mut run.bench, &mut run.controls).await
}

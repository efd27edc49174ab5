//! Runs that the server continues by itself, and the pause of a run that its own thread could not pause.

use ralph_core::id::RunId;
use ralph_core::run::{PauseReason, RunStatus};
use ralph_core::state::RunState;
use ralph_engine::error::RunError;
use ralph_engine::journal::Journal;
use ralph_engine::run::pause_idle_run;

use super::notify::Notifier;
use crate::app::App;
use crate::error::AppError;

/// Why a run cannot continue without the user.
#[derive(Debug)]
pub enum UnattendedPause {
    /// Its thread panicked or could not start.
    Thread(RunError),
    /// The server crashed this many times in a row while it opened the run.
    Crashes(u32),
    /// The run could not be opened.
    NotOpened(AppError),
}

/// Returns whether a run that lost its process can continue without the user.
pub fn continues_unattended(state: &RunState) -> bool {
    let is_interrupted = state.status == RunStatus::Paused(PauseReason::Interrupted);
    let may_continue = is_interrupted || state.may_continue;
    !state.discarded
        && (may_continue || state.status.needs_process() || state.status == RunStatus::SandboxLost)
}

/// Pauses a run that no process works on, unless it waits for the user or has ended already.
pub async fn pause_unattended(
    run: &RunId,
    why: UnattendedPause,
    app: &App,
) -> Result<RunStatus, AppError> {
    let dir = app.state_dir()?.run(run);
    let journal = Journal::open(&dir, app.clock(), app.redactor())?;
    if !continues_unattended(journal.state()) {
        return Ok(journal.state().status.clone());
    }
    let status = pause_idle_run(&dir, journal, why.reason()).map_err(|failure| {
        AppError::runtime(
            format!("cannot pause run `{run}`"),
            failure.to_string(),
            failure.hint(),
        )
    })?;
    let notifier = Notifier::new(app, app.providers()?.models.network());
    notifier.notify_status(&dir, &status).await;
    Ok(status)
}

impl UnattendedPause {
    fn reason(self) -> PauseReason {
        match self {
            Self::Thread(error) => error.pause_reason(),
            Self::Crashes(crashes) => RunError::OpeningCrashes { crashes }.pause_reason(),
            Self::NotOpened(error) => PauseReason::Broken {
                what: if error.why.is_empty() {
                    error.what
                } else {
                    format!("{}: {}", error.what, error.why)
                },
                fix: format!("{}; then `ralph resume`", error.fix),
            },
        }
    }
}

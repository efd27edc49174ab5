//! Works on a run in the foreground: shows it, listens to Ctrl-C, says how it ended.

use ralph_engine::error::RunError;
use ralph_engine::journal::{Journal, JournalError};
use ralph_engine::run::{self, Services};
use ralph_engine::store::RunDir;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::error::CliError;
use super::exit::ExitCode;
use crate::terminal::follow::JournalFollower;
use crate::terminal::{OutputMode, RunView};

/// Drives a run until nothing is left to do here.
pub(super) async fn drive(
    dir: RunDir,
    journal: Journal,
    outside: Services,
    mode: OutputMode,
) -> Result<ExitCode, CliError> {
    // Entered for the whole thread: every task on it works for this run.
    let _run = tracing::info_span!("run", run = %journal.state().plan.run).entered();
    let (interrupt, interrupted) = watch::channel(false);
    let mut latest = journal.latest();
    let mut reader = JournalFollower::new(&dir);
    // What an earlier process has shown is not shown again.
    if journal.state().epoch > 0 {
        reader.read_new(&mut |_, _| {})?;
    }
    let view = RunView::new(Box::new(std::io::stdout()), mode);
    let showing = tokio::task::spawn(async move {
        let mut view = view;
        let mut show = |reader: &mut JournalFollower| {
            reader.read_new(&mut |record, state| view.show(record, state))
        };
        show(&mut reader).ok();
        while latest.changed().await.is_ok() {
            show(&mut reader).ok();
        }
        show(&mut reader).ok();
    });
    let listening = tokio::task::spawn(forward_signals(interrupt));
    // Boxed: the whole machine is in this future.
    let ended = Box::pin(run::drive(dir.clone(), journal, outside, interrupted)).await;
    listening.abort();
    // The journal is closed now, so the view ends after the last record.
    showing.await.ok();
    let status = ended.map_err(|error| {
        tracing::warn!(%error, "the run cannot continue");
        run_failed(&dir, error)
    })?;
    tracing::info!(?status, "this process has ended its work on the run");
    Ok(ExitCode::for_status(&status))
}

/// The first signal ends the run cleanly, the second ends the program.
async fn forward_signals(interrupt: watch::Sender<bool>) {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let [Ok(mut terminal), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        return;
    };
    let mut once = async || {
        tokio::select! {
            _ = terminal.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    };
    once().await;
    interrupt.send_replace(true);
    once().await;
    #[expect(
        clippy::exit,
        reason = "the second Ctrl-C is a demand; the journal is sound at every moment"
    )]
    std::process::exit(i32::from(ExitCode::Interrupted.code()));
}

fn run_failed(dir: &RunDir, error: RunError) -> CliError {
    if let RunError::Journal(lost @ JournalError::Lost { .. }) = error {
        return lost.into();
    }
    let run = dir
        .root()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    CliError::runtime(
        format!("run `{run}` cannot go on"),
        error.to_string(),
        error.hint(),
    )
}

//! Drives a run in the foreground: shows it, handles signals and returns its exit code.

use std::io::{IsTerminal as _, Write};

use ralph_app::AppError;
use ralph_app::follow::{JournalFollower, POLL_INTERVAL};
use ralph_app::runs::ReadyRun;
use ralph_core::run::RunStatus;
use ralph_engine::live_output::LiveFollower;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::exit::ExitCode;
use crate::terminal::{OutputMode, RunView};

/// Drives a run until it ends or pauses.
pub(super) async fn drive(run: ReadyRun, mode: OutputMode) -> Result<ExitCode, AppError> {
    let (interrupt, interrupted) = watch::channel(false);
    let signal_task = tokio::task::spawn(forward_signals(interrupt));
    let driven = Box::pin(show_and_drive(
        run,
        (Box::new(std::io::stdout()), mode),
        interrupted,
    ))
    .await;
    signal_task.abort();
    Ok(ExitCode::for_status(&driven?))
}

/// Drives a run until it ends, pauses or is interrupted, and shows it.
pub(super) async fn show_and_drive(
    run: ReadyRun,
    (out, mode): (Box<dyn Write + Send>, OutputMode),
    interrupted: watch::Receiver<bool>,
) -> Result<RunStatus, AppError> {
    let span = tracing::info_span!("run", run = %run.journal().state().plan.run);
    let mut latest = run.journal().latest();
    let mut reader = JournalFollower::new(run.dir());
    // An earlier process has shown these records.
    if run.journal().state().epoch > 0 {
        reader.read_new(&mut |_, _| {})?;
    }
    let mut live = LiveFollower::new(run.dir());
    let mut view = RunView::new(out, mode);
    let view_task = tokio::task::spawn(async move {
        let mut tick = tokio::time::interval(POLL_INTERVAL);
        loop {
            show_new(&mut reader, &mut view);
            tokio::select! {
                changed = latest.changed() => if changed.is_err() { break },
                _ = tick.tick(), if view.has_spinner() => {
                    // The spinner is a convenience: `ralph logs -f` reports output that cannot be read.
                    if let Ok(lines) = live.read_new() {
                        view.show_latest_output(&lines);
                    }
                }
            }
        }
        show_new(&mut reader, &mut view);
    });
    let notifier = run.notifier().clone();
    let result = run.drive(interrupted).await;
    // The journal is closed now, so the view ends after the last record.
    if let Err(error) = view_task.await {
        tracing::warn!(%error, "the view of the run ended early");
    }
    let _run = span.entered();
    let status = result.inspect_err(|error| tracing::warn!(%error, "the run cannot continue"))?;
    tracing::info!(
        status = status.as_str(),
        "this process has ended its work on the run"
    );
    if notifier.rings_bell(&status) {
        ring_bell();
    }
    Ok(status)
}

/// Rings the bell of the terminal, if there is one.
fn ring_bell() {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal()
        && let Err(error) = stderr.write_all(b"\x07")
    {
        tracing::debug!(%error, "cannot ring the bell");
    }
}

/// Shows the records that were written since the last call.
fn show_new(reader: &mut JournalFollower, view: &mut RunView) {
    // The run itself detects and reports an unreadable journal.
    if let Err(error) = reader.read_new(&mut |record, state| view.show(record, state)) {
        tracing::warn!(%error, "cannot show the journal");
    }
}

/// Forwards the first signal, which pauses the run. The second ends the program.
pub(super) async fn forward_signals(interrupt: watch::Sender<bool>) {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let [Ok(mut ctrl_c), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        return;
    };
    let mut next_signal = async || {
        tokio::select! {
            _ = ctrl_c.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    };
    next_signal().await;
    interrupt.send_replace(true);
    next_signal().await;
    #[expect(
        clippy::exit,
        reason = "the user insists, and the journal is consistent at every moment"
    )]
    std::process::exit(i32::from(ExitCode::Interrupted.code()));
}

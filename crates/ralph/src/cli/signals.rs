//! The signals that ask a command to end.

use ralph_app::AppError;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, received from the registration on.
#[derive(Debug)]
pub(super) struct ShutdownSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl ShutdownSignals {
    /// Registers the signals. From now on they do not end the process by themselves.
    pub(super) fn register() -> Result<Self, AppError> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        let [Ok(interrupt), Ok(terminate)] = kinds.map(signal) else {
            return Err(AppError::runtime(
                "cannot listen for signals",
                "the system does not allow it",
                "check the limits of this user (`ulimit -a`)",
            ));
        };
        Ok(Self {
            interrupt,
            terminate,
        })
    }

    /// Waits for the next of these signals.
    pub(super) async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

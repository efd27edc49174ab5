//! Signals and requests that end a selftest early.

use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Listens for signals that end the program, and for a cancellation. A signal that arrives between two waits is
/// not lost.
pub(super) struct Interrupts {
    signals: Option<[Signal; 3]>,
    cancelled: watch::Receiver<bool>,
}

impl Interrupts {
    /// Starts listening.
    pub(super) fn listen(cancelled: watch::Receiver<bool>) -> Self {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        let signals = match kinds.map(signal) {
            [Ok(terminal), Ok(terminate), Ok(hangup)] => Some([terminal, terminate, hangup]),
            _ => None,
        };
        Self { signals, cancelled }
    }

    /// Runs the work until a signal or a cancellation arrives. Returns `None` after one.
    pub(super) async fn run_until_signal<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let Self { signals, cancelled } = self;
        let signalled = async {
            match signals {
                Some([terminal, terminate, hangup]) => tokio::select! {
                    _ = terminal.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                },
                None => pending().await,
            }
        };
        let cancelled = async {
            if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                // The sender is gone, so nothing can cancel the work any more.
                pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = signalled => None,
            () = cancelled => None,
            done = work => Some(done),
        }
    }
}

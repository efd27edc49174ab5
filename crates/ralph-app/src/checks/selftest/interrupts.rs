//! Signals that end a selftest early.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for signals that end the program. A signal that arrives between two waits is not lost.
pub(super) struct Interrupts(Option<[Signal; 3]>);

impl Interrupts {
    /// Starts listening.
    pub(super) fn listen() -> Self {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        match kinds.map(signal) {
            [Ok(terminal), Ok(terminate), Ok(hangup)] => Self(Some([terminal, terminate, hangup])),
            _ => Self(None),
        }
    }

    /// Runs the work until a signal arrives. Returns `None` after a signal.
    pub(super) async fn run_until_signal<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let Some([terminal, terminate, hangup]) = &mut self.0 else {
            return Some(work.await);
        };
        tokio::select! {
            biased;
            _ = terminal.recv() => None,
            _ = terminate.recv() => None,
            _ = hangup.recv() => None,
            done = work => Some(done),
        }
    }
}

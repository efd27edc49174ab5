//! Threads for connections, each with a separate runtime.
//!
//! A connection stays on its thread. Threads that share work would have to wake each other for
//! every event, which takes longer than forwarding the data.

use std::io;
use std::num::NonZero;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The maximum number of threads; the proxy mostly waits for the provider.
const MAX_THREADS: usize = 4;

/// Threads that receive connections in turn. Dropping them aborts open connections.
pub(super) struct ConnectionThreads {
    threads: Vec<ConnectionThread>,
    next: usize,
}

struct ConnectionThread {
    handle: Handle,
    /// Dropping the sender ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ConnectionThreads {
    /// Starts a thread per core.
    pub(super) fn start() -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let all = (0..cores.min(MAX_THREADS)).map(|_| ConnectionThread::start());
        Ok(Self {
            threads: all.collect::<io::Result<_>>()?,
            next: 0,
        })
    }

    /// Returns the next thread in turn.
    pub(super) fn next_handle(&mut self) -> &Handle {
        self.next = (self.next + 1) % self.threads.len();
        &self.threads[self.next].handle
    }
}

impl ConnectionThread {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new()
            .name("connections".to_owned())
            .spawn(move || drop(runtime.block_on(stopped)))?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for ConnectionThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of a connection stays in its task.
            if thread.join().is_err() {
                tracing::warn!("a thread of the proxy has panicked");
            }
        }
    }
}

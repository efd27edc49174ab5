//! Threads for connections, each with a runtime of its own.
//!
//! A connection stays on its thread. Threads that share their work would have to wake each other for
//! every event, which takes longer than passing it on.

use std::io;
use std::num::NonZero;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// How many threads there are at most; the rest is waiting for the provider anyway.
const MAX_THREADS: usize = 4;

/// Threads that take connections in turn. Dropping them cuts off what still runs there.
pub(super) struct ConnectionThreads {
    threads: Vec<ConnectionThread>,
    next: usize,
}

struct ConnectionThread {
    handle: Handle,
    /// Dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ConnectionThreads {
    /// Starts a thread for each core.
    pub(super) fn start() -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let all = (0..cores.min(MAX_THREADS)).map(|_| ConnectionThread::start());
        Ok(Self {
            threads: all.collect::<io::Result<_>>()?,
            next: 0,
        })
    }

    /// Returns the thread whose turn it is.
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
            thread.join().ok();
        }
    }
}

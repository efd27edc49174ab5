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
const MOST: usize = 4;

/// Threads that take connections in turn. Dropping them cuts off what still runs there.
pub(super) struct Workers {
    all: Vec<Worker>,
    next: usize,
}

struct Worker {
    handle: Handle,
    /// Dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Workers {
    /// Starts a thread for each core.
    pub(super) fn start() -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let all = (0..cores.min(MOST)).map(|_| Worker::start());
        Ok(Self {
            all: all.collect::<io::Result<_>>()?,
            next: 0,
        })
    }

    /// Returns the thread whose turn it is.
    pub(super) fn next(&mut self) -> &Handle {
        self.next = (self.next + 1) % self.all.len();
        &self.all[self.next].handle
    }
}

impl Worker {
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

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of a connection stays in its task.
            thread.join().ok();
        }
    }
}

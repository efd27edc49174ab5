//! Flow control: the number of bytes that may be sent on a stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::frame::WINDOW;

/// The credit granted by the peer, and whether the stream is open.
#[derive(Debug)]
pub(super) struct Credit {
    available: AtomicUsize,
    changed: Notify,
    /// The task that polls for credit; at most one per stream.
    waker: Mutex<Option<Waker>>,
}

/// More than any window: the stream is closed, and sent bytes are dropped.
const CLOSED: usize = usize::MAX / 2;

impl Credit {
    pub(super) fn new() -> Self {
        Self {
            available: AtomicUsize::new(WINDOW),
            changed: Notify::new(),
            waker: Mutex::new(None),
        }
    }

    /// Returns the available credit.
    pub(super) fn available(&self) -> usize {
        self.available.load(Ordering::Acquire)
    }

    /// Consumes credit.
    pub(super) fn spend(&self, bytes: usize) {
        self.available.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Adds credit from the peer; returns whether it is within the window.
    pub(super) fn grant(&self, bytes: usize) -> bool {
        let before = self.available.fetch_add(bytes, Ordering::AcqRel);
        self.wake();
        before >= CLOSED || before.saturating_add(bytes) <= WINDOW
    }

    /// Closes the stream and wakes all waiters.
    pub(super) fn close(&self) {
        self.available.store(CLOSED, Ordering::Release);
        self.wake();
    }

    /// Returns whether the stream is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.available() > WINDOW
    }

    /// Polls for the available credit, once it is not zero.
    pub(super) fn poll_available(&self, context: &Context<'_>) -> Poll<usize> {
        if self.available() == 0 {
            *self.lock_waker() = Some(context.waker().clone());
            // Credit may have arrived before the waker was set.
            if self.available() == 0 {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.available())
    }

    fn lock_waker(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.changed.notify_waiters();
        let waker = self.lock_waker().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until this many bytes may be sent.
    pub(super) async fn wait_for(&self, bytes: usize) {
        loop {
            let changed = self.changed.notified();
            if self.available() >= bytes {
                return;
            }
            changed.await;
        }
    }
}

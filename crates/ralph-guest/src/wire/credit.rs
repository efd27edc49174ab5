//! How many bytes may still be sent on a stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::frame::WINDOW;

/// What the other side will still take, and whether it is still there.
#[derive(Debug)]
pub(super) struct Credit {
    available: AtomicUsize,
    changed: Notify,
    /// Who is polled for it instead of waiting; a stream has one at most.
    waker: Mutex<Option<Waker>>,
}

/// More than any window: the stream is over, and whatever is sent goes nowhere.
const CLOSED: usize = usize::MAX / 2;

impl Credit {
    pub(super) fn new() -> Self {
        Self {
            available: AtomicUsize::new(WINDOW),
            changed: Notify::new(),
            waker: Mutex::new(None),
        }
    }

    /// Returns how much may be sent now.
    pub(super) fn available(&self) -> usize {
        self.available.load(Ordering::Acquire)
    }

    /// Takes some of what is left.
    pub(super) fn spend(&self, bytes: usize) {
        self.available.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Adds what the other side has given; tells whether that is no more than it took.
    pub(super) fn grant(&self, bytes: usize) -> bool {
        let before = self.available.fetch_add(bytes, Ordering::AcqRel);
        self.wake();
        before >= CLOSED || before.saturating_add(bytes) <= WINDOW
    }

    /// Lets everybody go who waits: nothing is sent any more.
    pub(super) fn close(&self) {
        self.available.store(CLOSED, Ordering::Release);
        self.wake();
    }

    /// Tells whether nothing is sent any more.
    pub(super) fn is_closed(&self) -> bool {
        self.available() > WINDOW
    }

    /// Returns how much may be sent, as soon as it is anything.
    pub(super) fn poll_available(&self, context: &Context<'_>) -> Poll<usize> {
        if self.available() == 0 {
            *self.lock_waker() = Some(context.waker().clone());
            // It may have come before anybody knew whom to wake.
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

    /// Waits until so many bytes may be sent.
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

//! Polls parts of one task that wake each other, without waking the task itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Wakes the task that polls through it, unless that task is polling right now and polls again
/// anyway.
pub(super) struct CoalescingWaker {
    shared: Arc<CoalescingWakerState>,
    waker: Waker,
}

struct CoalescingWakerState {
    task: Mutex<Waker>,
    is_polled: AtomicBool,
    was_woken: AtomicBool,
}

impl CoalescingWaker {
    pub(super) fn new() -> Self {
        let shared = Arc::new(CoalescingWakerState {
            task: Mutex::new(Waker::noop().clone()),
            is_polled: AtomicBool::new(false),
            was_woken: AtomicBool::new(false),
        });
        let waker = shared.clone().into();
        Self { shared, waker }
    }

    /// Polls several parts that may wake each other. `poll` must poll all parts. A wake is dropped
    /// when `poll` returns ready, so the caller must poll the parts again afterwards.
    pub(super) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        /// The polls per turn of the task. Parts that are woken again after that wait for its next
        /// turn, so that other tasks can run.
        const MAX_POLLS: usize = 3;
        self.shared.set_task(cx.waker());
        self.shared.is_polled.store(true, Ordering::SeqCst);
        let mut parts = Context::from_waker(&self.waker);
        let mut result = Poll::Pending;
        for _ in 0..MAX_POLLS {
            self.shared.was_woken.store(false, Ordering::SeqCst);
            result = poll(&mut parts);
            if result.is_ready() || !self.shared.was_woken.load(Ordering::SeqCst) {
                break;
            }
        }
        self.shared.is_polled.store(false, Ordering::SeqCst);
        if result.is_pending() && self.shared.was_woken.load(Ordering::SeqCst) {
            cx.waker().wake_by_ref();
        }
        result
    }
}

impl CoalescingWakerState {
    fn set_task(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !task.will_wake(waker) {
            task.clone_from(waker);
        }
    }
}

impl Wake for CoalescingWakerState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Set the flag before the check: either the poller sees the flag, or the task is woken here.
        self.was_woken.store(true, Ordering::SeqCst);
        if !self.is_polled.load(Ordering::SeqCst) {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn only_external_wakes_reach_the_task() {
        let count = Arc::new(WakeCounter::default());
        let task = Waker::from(count.clone());
        let mut cx = Context::from_waker(&task);
        let count_wakes = || count.0.load(Ordering::SeqCst);
        let waker = CoalescingWaker::new();
        let (mut stored, mut polls) = (None, 0);
        // Polled again after it count_wakes itself.
        let result = waker.poll(&mut cx, |cx| {
            stored = Some(cx.waker().clone());
            polls += 1;
            if polls == 1 {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert_eq!((result, polls, count_wakes()), (Poll::Pending, 2, 0));
        // Woken from outside.
        stored.unwrap().wake();
        assert_eq!(count_wakes(), 1);
        // A future that always count_wakes itself must wait for its turn.
        let result = waker.poll(&mut cx, |cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!((result, count_wakes()), (Poll::Pending, 2));
        // A ready result is polled again by the caller.
        let result = waker.poll(&mut cx, |cx| {
            cx.waker().wake_by_ref();
            Poll::Ready(())
        });
        assert_eq!((result, count_wakes()), (Poll::Ready(()), 2));
    }
}

//! Polling several things of one task that wake each other, without waking the task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Wakes the task that polls through it, unless that task is just polling: then it looks again.
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

    /// Polls something that is made of several parts, each of which may wake the others. All of it must
    /// have been polled when `poll` returns, and it must be polled again after it was ready.
    pub(super) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        /// What is still awake after this waits for its next turn, as other tasks do.
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
        // In this order: a poll that ends after the first line sees the second.
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
        let wakes = || count.0.load(Ordering::SeqCst);
        let nudge = CoalescingWaker::new();
        let (mut kept, mut looks) = (None, 0);
        // It is looked at again after it was woken by itself.
        let result = nudge.poll(&mut cx, |cx| {
            kept = Some(cx.waker().clone());
            looks += 1;
            if looks == 1 {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert_eq!((result, looks, wakes()), (Poll::Pending, 2, 0));
        // It is woken from elsewhere.
        kept.unwrap().wake();
        assert_eq!(wakes(), 1);
        // What never rests has to wait for its turn.
        let result = nudge.poll(&mut cx, |cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!((result, wakes()), (Poll::Pending, 2));
        // Whoever has a result comes back anyway.
        let result = nudge.poll(&mut cx, |cx| {
            cx.waker().wake_by_ref();
            Poll::Ready(())
        });
        assert_eq!((result, wakes()), (Poll::Ready(()), 2));
    }
}

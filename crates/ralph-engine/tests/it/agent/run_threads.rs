//! Several runs in one process, each on a thread of its own.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ralph_core::ports::Clock;
use ralph_core::run::RunStatus;
use ralph_engine::error::RunError;

use super::script::ScriptedAgent;
use super::test_run::{DO_TASK, EngineTestRun};

/// A clock that blocks the thread which reads it until it is released.
#[derive(Default)]
struct BlockingClock {
    state: Mutex<BlockState>,
    changed: Condvar,
}

#[derive(Default)]
struct BlockState {
    is_waiting: bool,
    is_released: bool,
}

impl BlockingClock {
    /// Waits until a thread is blocked by the clock.
    fn wait_until_blocking(&self) {
        let state = self.state.lock().unwrap();
        let state = self
            .changed
            .wait_timeout_while(state, Duration::from_mins(1), |state| !state.is_waiting)
            .unwrap();
        assert!(!state.1.timed_out(), "no thread reads the clock");
    }

    fn release(&self) {
        self.state.lock().unwrap().is_released = true;
        self.changed.notify_all();
    }
}

impl Clock for BlockingClock {
    fn now(&self) -> jiff::Timestamp {
        let mut state = self.state.lock().unwrap();
        state.is_waiting = true;
        self.changed.notify_all();
        drop(
            self.changed
                .wait_while(state, |state| !state.is_released)
                .unwrap(),
        );
        jiff::Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        Instant::now().elapsed()
    }
}

struct PanickingClock;

impl Clock for PanickingClock {
    fn now(&self) -> jiff::Timestamp {
        panic!("the clock is broken")
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[tokio::test]
async fn a_run_that_blocks_its_thread_does_not_hold_up_another() {
    let (blocked, free) = (EngineTestRun::new(""), EngineTestRun::new(""));
    let clock = Arc::new(BlockingClock::default());
    let agent = || ScriptedAgent::new(&[DO_TASK]);
    let (first, _interrupt) = blocked.start_on_thread(agent(), clock.clone());
    clock.wait_until_blocking();
    let (second, _interrupt) = free.start_on_thread(agent(), EngineTestRun::clock());
    assert_eq!(second.join().await.unwrap(), RunStatus::Succeeded);
    let lines = blocked.event_lines();
    assert!(!lines.contains(&"1.1 starts".to_owned()), "{lines:?}");
    clock.release();
    assert_eq!(first.join().await.unwrap(), RunStatus::Succeeded);
}

#[tokio::test]
async fn a_panic_ends_only_its_own_run() {
    let (broken, sound) = (EngineTestRun::new(""), EngineTestRun::new(""));
    let agent = || ScriptedAgent::new(&[DO_TASK]);
    let (first, _interrupt) = broken.start_on_thread(agent(), Arc::new(PanickingClock));
    let (second, _interrupt) = sound.start_on_thread(agent(), EngineTestRun::clock());
    let error = first.join().await.unwrap_err();
    assert!(matches!(error, RunError::Thread(_)), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the thread of the run failed: it panicked: the clock is broken"
    );
    assert_eq!(second.join().await.unwrap(), RunStatus::Succeeded);
    // The run itself is intact: another process can continue it.
    let status = broken.run_to_end(agent()).await;
    assert_eq!(status, RunStatus::Succeeded);
}

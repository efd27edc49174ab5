//! Kills a run, resumes it, and compares its results.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crash_stage::CrashStage;
use crate::strace::ReferenceTrace;

/// Number of concurrent runs.
const AT_A_TIME: usize = 3;

/// Runs a function on every case, several at a time; a failure names its case.
pub(super) fn for_each<T: Sync>(cases: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(case);
                }
            });
        }
    });
}

/// Asserts that the audit finds no problem, whether the run has ended or not.
pub(super) fn audit(stage: &CrashStage, case: &str) {
    let output = stage.run(&["audit", "last"]);
    assert_eq!(output.code, 0, "{case}: {}{}", output.stdout, output.stderr);
}

/// Resumes a killed run to its end.
pub(super) fn resume_or_start(stage: &CrashStage, case: &str) {
    let command = match stage.shown() {
        // It died before the run was created.
        None => ["run", "--model", "scripted:replies.jsonl"].to_vec(),
        Some(shown) if shown["status"] == "succeeded" => return,
        Some(shown) => {
            assert_eq!(shown["status"], "interrupted", "{case}");
            audit(stage, case);
            vec!["resume", "last"]
        }
    };
    let output = stage.run(&command);
    assert_eq!(output.code, 0, "{case}: {}{}", output.stdout, output.stderr);
}

/// Resumes a killed run and compares all its results with those of an undisturbed run.
pub(super) fn assert_same_result(stage: &CrashStage, case: &str) {
    resume_or_start(stage, case);
    audit(stage, case);
    assert_eq!(stage.facts(), ReferenceTrace::get().facts, "{case}");
}

/// Returns the index of the `nth` matching event in the undisturbed run's journal.
pub(super) fn find(kind: &str, key: &str, value: &str, nth: usize) -> usize {
    let events = ReferenceTrace::get().events.iter().enumerate();
    let mut found =
        events.filter(|(_, e)| e["type"] == kind && (key.is_empty() || e[key] == value));
    let place = found.nth(nth - 1);
    place.unwrap_or_else(|| panic!("no {kind} {value} {nth}")).0
}

/// Kills a run right after this event was written.
pub(super) fn kill_after(stage: &CrashStage, index: usize) {
    let point = ReferenceTrace::get().after_event(index);
    assert_eq!(point.kill(&stage.start()).code(), None, "{point:?}");
    let kinds = |events: &[Value]| -> Vec<String> {
        events.iter().map(|e| e["type"].to_string()).collect()
    };
    let expected = &ReferenceTrace::get().events[..=index];
    assert_eq!(kinds(&stage.events()), kinds(expected), "{point:?}");
}

/// Starts the task and kills it as soon as a condition is met.
pub(super) fn kill_when(stage: &CrashStage, reached: impl Fn() -> bool) {
    let mut run = stage.start().stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !reached() {
        assert_eq!(run.try_wait().unwrap(), None);
        let elapsed = began.elapsed();
        assert!(
            elapsed < Duration::from_mins(5),
            "the moment to kill did not come in {elapsed:?}"
        );
        thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
}

//! A run in a live process, steered by the test.

use std::io::Read as _;
use std::process::Child;
use std::time::{Duration, Instant};

use ralph_guest::best_effort;
use serde_json::Value;

use super::{Project, ProjectOutput};

/// Longer than anything takes on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// A run in a live process.
pub(crate) struct LiveRun<'a> {
    pub(super) project: &'a Project,
    pub(super) child: Child,
}

impl<'a> LiveRun<'a> {
    /// Wraps a process started by the test.
    pub(crate) fn new(project: &'a Project, child: Child) -> Self {
        Self { project, child }
    }
}

impl LiveRun<'_> {
    /// Returns the process id.
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Waits until the journal meets a condition.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_true: impl Fn(&[Value]) -> bool) {
        let start = Instant::now();
        loop {
            let journal = self.project.find_run().map(|_| self.project.journal());
            if journal.is_some_and(|journal| is_true(&journal)) {
                return;
            }
            assert!(
                start.elapsed() < WAIT_TIMEOUT,
                "waited {WAIT_TIMEOUT:?} in vain until {what}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the nth event of a type.
    #[track_caller]
    pub(crate) fn wait_for_event(&self, kind: &str, count: usize) {
        self.wait_until(&format!("{count} × {kind}"), |journal| {
            journal.iter().filter(|event| event["type"] == kind).count() >= count
        });
    }

    /// Waits until the last status in the journal is this one.
    #[track_caller]
    pub(crate) fn wait_for_status(&self, status: &str) {
        self.wait_until(status, |journal| {
            let last = journal
                .iter()
                .rfind(|event| event["type"] == "status_changed");
            last.is_some_and(|event| event["status"] == status)
        });
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Returns whether the process is still running.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the process to end.
    #[track_caller]
    pub(crate) fn wait(mut self) -> ProjectOutput {
        let start = Instant::now();
        while self.is_alive() {
            assert!(start.elapsed() < WAIT_TIMEOUT, "the program does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut stdout = String::new();
        let mut stderr = String::new();
        let out = self.child.stdout.as_mut().unwrap();
        out.read_to_string(&mut stdout).unwrap();
        let err = self.child.stderr.as_mut().unwrap();
        err.read_to_string(&mut stderr).unwrap();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        ProjectOutput {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for LiveRun<'_> {
    fn drop(&mut self) {
        // A test that failed must not leave a process behind.
        best_effort(self.child.kill());
        best_effort(self.child.wait());
    }
}

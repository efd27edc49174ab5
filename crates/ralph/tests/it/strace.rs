//! Kills ralph at a reproducible system call.
//!
//! The engine works on the main thread, so the calls of that thread come in the same order in every
//! run of the same script. Only calls that change something are counted.

use std::fs;
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;

use serde_json::Value;

use crate::crash_stage::{CrashStage, RunFacts};

/// Calls that change something, under all their names. The last one occurs once for every new
/// process; the calls that start processes also start threads, whose number varies.
const CHANGES: &str = "trace=?fdatasync,?fsync,?ftruncate,?rename,?renameat,?renameat2,?mkdir,?mkdirat,\
    ?unlink,?unlinkat,?pidfd_open";

/// A system call in a run: the `nth` call of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KillPoint {
    pub(crate) call: String,
    pub(crate) nth: usize,
}

impl KillPoint {
    pub(crate) fn new(call: &str, nth: usize) -> Self {
        Self {
            call: call.to_owned(),
            nth,
        }
    }

    /// Runs a command whose call fails with an I/O error, as on a broken disk, and returns its
    /// output.
    pub(crate) fn fail(&self, command: &Command) -> std::process::Output {
        let Self { call, nth } = self;
        let inject = format!("inject={call}:error=EIO:when={nth}");
        let trace = format!("trace={call}");
        strace(&["-o", "/dev/null", "-e", &trace, "-e", &inject], command)
    }

    /// Runs a command and kills it right before the call. Returns its exit status.
    pub(crate) fn kill(&self, command: &Command) -> ExitStatus {
        let Self { call, nth } = self;
        let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
        let trace = format!("trace={call}");
        let output = strace(&["-o", "/dev/null", "-e", &trace, "-e", &inject], command);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{self:?}");
        output.status
    }
}

/// Runs a command under strace; never skips it if strace exists.
fn strace(options: &[&str], command: &Command) -> std::process::Output {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    Command::new("strace")
        .args(["-qq", "-e", "signal=none"])
        .args(options)
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(variables)
        .current_dir(command.get_current_dir().unwrap())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap_or_else(|error| {
            panic!("these tests kill ralph by `strace`, which cannot be started: {error}; `scripts/test` installs it")
        })
}

/// An undisturbed run: its results and its calls.
pub(crate) struct ReferenceTrace {
    pub(crate) facts: RunFacts,
    pub(crate) events: Vec<Value>,
    /// Name and arguments of each call.
    calls: Vec<(String, String)>,
}

impl ReferenceTrace {
    /// Returns the trace shared by all tests of this process.
    pub(crate) fn get() -> &'static Self {
        static ONCE: OnceLock<ReferenceTrace> = OnceLock::new();
        ONCE.get_or_init(Self::record)
    }

    fn record() -> Self {
        let stage = CrashStage::new();
        let notes = tempfile::NamedTempFile::new().unwrap();
        let file = notes.path().display().to_string();
        let output = strace(&["-y", "-o", &file, "-e", CHANGES], &stage.start());
        assert!(output.status.success(), "{output:?}");
        let text = fs::read_to_string(notes.path()).unwrap();
        Self {
            facts: stage.facts(),
            events: stage.events(),
            calls: text
                .lines()
                .filter_map(|line| line.split_once('('))
                .map(|(name, arguments)| (name.to_owned(), arguments.to_owned()))
                .collect(),
        }
    }

    /// Returns the point at which an event is in the journal and nothing after it has happened.
    pub(crate) fn after_event(&self, index: usize) -> KillPoint {
        self.point(self.sync_of(index))
    }

    /// Returns the points of these calls between two events.
    pub(crate) fn between(&self, first: usize, second: usize, call: &str) -> Vec<KillPoint> {
        self.points_between(first, second, |name, _| name == call)
    }

    /// Returns the points of all calls between two events with this text in their arguments.
    pub(crate) fn between_in(&self, first: usize, second: usize, words: &str) -> Vec<KillPoint> {
        self.points_between(first, second, |_, arguments| arguments.contains(words))
    }

    fn points_between(
        &self,
        first: usize,
        second: usize,
        is_match: impl Fn(&str, &str) -> bool,
    ) -> Vec<KillPoint> {
        let span = self.sync_of(first)..self.sync_of(second);
        let found = self.positions(is_match).into_iter();
        found
            .filter(|position| span.contains(position))
            .map(|position| self.point(position))
            .collect()
    }

    /// Returns the points at which the last journal records are synced.
    pub(crate) fn last_syncs(&self, count: usize) -> Vec<KillPoint> {
        let events = self.events.len();
        let last = (events - count)..events;
        last.map(|index| self.point(self.sync_of(index))).collect()
    }

    fn sync_of(&self, index: usize) -> usize {
        let is_sync =
            |name: &str, file: &str| name == "fdatasync" && file.contains("/journal.jsonl>");
        let syncs = self.positions(is_sync);
        // Counted from the end: all but the first few records are written and synced one by one.
        let back = self.events.len() - index;
        syncs[syncs.len() - back]
    }

    /// Returns the point right after the last call with this text in its arguments.
    pub(crate) fn after_call(&self, words: &str) -> KillPoint {
        let found = self.positions(|_, arguments| arguments.contains(words));
        self.point(found[found.len() - 1] + 1)
    }

    /// Returns points spread evenly over all calls except journal writes; at most all of them.
    pub(crate) fn spread(&self, count: usize) -> Vec<KillPoint> {
        let others = self.positions(|name, _| name != "fdatasync");
        let count = count.min(others.len());
        let position = |i: usize| others[others.len() * (2 * i + 1) / (2 * count)];
        (0..count).map(|i| self.point(position(i))).collect()
    }

    fn positions(&self, is_match: impl Fn(&str, &str) -> bool) -> Vec<usize> {
        let calls = self.calls.iter().enumerate();
        calls
            .filter(|(_, (name, arguments))| is_match(name, arguments))
            .map(|(position, _)| position)
            .collect()
    }

    fn point(&self, position: usize) -> KillPoint {
        let (call, _) = &self.calls[position];
        let before = self.calls[..=position].iter();
        let nth = before.filter(|(name, _)| name == call).count();
        KillPoint::new(call, nth)
    }
}

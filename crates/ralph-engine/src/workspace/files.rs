//! The host's copies of the `.ralph/` files.

use std::collections::BTreeMap;
use std::fs;

use ralph_core::event::LogPosition;
use ralph_core::id::Digest;
use ralph_core::printable;
use ralph_core::secret::Redactor;
use ralph_core::templates;

use crate::durable::{self, AppendLog, StoreError, SyncMode};
use crate::store::RunDir;
use crate::torn_lines;

/// The permission to change a `.ralph/` file from inside the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFileOwner {
    /// Only the runner appends to it. Changes in the sandbox are reverted.
    Runner,
    /// The user and the doctor write it on the host. Changes in the sandbox are reverted.
    Host,
    /// The agent may append to it.
    AgentAppendOnly,
    /// The agent may rewrite it.
    Agent,
    /// The agent may mark steps and add notes below them.
    AgentMarks,
}

/// The `.ralph/` files and their owners.
pub const FILE_OWNERS: [(&str, RunFileOwner); 7] = [
    ("activity.log", RunFileOwner::Runner),
    ("errors.log", RunFileOwner::Runner),
    ("guardrails.md", RunFileOwner::AgentAppendOnly),
    ("progress.md", RunFileOwner::Agent),
    ("notes.md", RunFileOwner::Host),
    ("diagnostics.md", RunFileOwner::Host),
    (SPEC_FILE, RunFileOwner::AgentMarks),
];

/// The specification of an issue. Only the run of an issue has it.
pub const SPEC_FILE: &str = "spec.md";

/// Returns the `.ralph/` files of a run with their owners.
pub(super) fn run_files(dir: &RunDir) -> impl Iterator<Item = (&'static str, RunFileOwner)> {
    let has_spec = dir.file(SPEC_FILE).exists();
    let files = FILE_OWNERS.into_iter();
    files.filter(move |(name, _)| has_spec || *name != SPEC_FILE)
}

/// The largest file that is accepted from the agent.
pub(super) const MAX_AGENT_FILE: u64 = 1 << 20;

/// The host's copies of the `.ralph/` files.
pub struct HostFiles {
    dir: RunDir,
    activity: AppendLog,
    errors: AppendLog,
    redactor: Redactor,
}

impl HostFiles {
    /// Opens the host's copies, creates missing ones from the templates and moves torn lines aside.
    pub fn open(dir: &RunDir, redactor: Redactor) -> Result<Self, StoreError> {
        let starters = [
            ("guardrails.md", templates::GUARDRAILS),
            ("progress.md", templates::PROGRESS),
            ("notes.md", templates::NOTES),
            ("diagnostics.md", templates::DIAGNOSTICS),
        ];
        for (name, text) in starters {
            let path = dir.file(name);
            if !path.exists() {
                durable::write(&path, text.as_bytes())?;
            }
        }
        repair_logs(dir)?;
        Ok(Self {
            activity: AppendLog::open(dir.file("activity.log"))?,
            errors: AppendLog::open(dir.file("errors.log"))?,
            dir: dir.clone(),
            redactor,
        })
    }

    /// Adds a line to `activity.log`.
    pub fn log_activity(
        &mut self,
        at: jiff::Timestamp,
        iteration: u32,
        text: &str,
    ) -> Result<(), StoreError> {
        let line = log_line(&self.redactor, at, iteration, text);
        self.activity.append(line.as_bytes(), SyncMode::Later)
    }

    /// Adds a line to `errors.log`.
    pub fn log_error(
        &mut self,
        at: jiff::Timestamp,
        iteration: u32,
        text: &str,
    ) -> Result<(), StoreError> {
        let line = log_line(&self.redactor, at, iteration, text);
        self.errors.append(line.as_bytes(), SyncMode::Later)
    }

    /// Syncs both logs.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.activity.sync()?;
        self.errors.sync()
    }

    /// Returns the length of a file that the runner writes; none for other files.
    pub fn length(&self, name: &str) -> Option<u64> {
        match name {
            "activity.log" => Some(self.activity.length()),
            "errors.log" => Some(self.errors.length()),
            _ => None,
        }
    }

    /// Returns the text of a file; not for the logs, which have no size limit.
    pub fn text(&self, name: &str) -> Result<String, StoreError> {
        let path = self.dir.file(name);
        let bytes = fs::read(&path).map_err(StoreError::when("read", &path))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Replaces a file with a new version, redacted. Returns whether it was stored unchanged.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        let clean = self.redactor.redact_bytes(bytes);
        durable::write(&self.dir.file(name), &clean)?;
        Ok(*clean == *bytes)
    }

    /// Returns the last lines of `errors.log` without their times, independent of the clock.
    pub fn errors_tail(&self) -> Result<String, StoreError> {
        let text = durable::tail(self.errors.path(), 32 << 10)?;
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest))
            .collect();
        Ok(lines[lines.len().saturating_sub(200)..].join("\n"))
    }

    /// Returns the lengths and digests of the append-only files.
    pub fn marks(&self) -> Result<BTreeMap<String, LogPosition>, StoreError> {
        let guardrails = self.text("guardrails.md")?;
        let mark = LogPosition {
            bytes: guardrails.len() as u64,
            sha256: Digest::compute(guardrails.as_bytes()),
        };
        Ok(BTreeMap::from([
            ("activity.log".to_owned(), self.activity.mark()),
            ("errors.log".to_owned(), self.errors.mark()),
            ("guardrails.md".to_owned(), mark),
        ]))
    }

    /// Returns the run's directory.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }
}

/// Returns a log entry on one line, whatever the text is.
///
/// It is redacted before and after control characters are removed: the first pass finds secrets
/// that contain line breaks, the second one finds secrets that a colour code splits.
fn log_line(redactor: &Redactor, at: jiff::Timestamp, iteration: u32, text: &str) -> String {
    let one_line: String = redactor
        .redact(text)
        .trim_end()
        .chars()
        .map(|c| if c == '\n' { '\u{23ce}' } else { c })
        .filter(|c| !c.is_control() || *c == '\t')
        .collect();
    let at = at.round(jiff::Unit::Second).unwrap_or(at);
    format!(
        "{at} iteration={iteration} {}\n",
        printable::escape_text(&redactor.redact(&one_line))
    )
}

/// Moves an incomplete line that a crash left at the end of a log to `recovered/`.
pub(crate) fn repair_logs(dir: &RunDir) -> Result<(), StoreError> {
    for log in ["activity.log", "errors.log"] {
        torn_lines::repair_tail(&dir.file(log), &dir.recovered())?;
    }
    Ok(())
}

//! The run's log of the gate's decisions: a line of JSON per decision, or a summary of many.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ralph_core::printable;
use ralph_core::secret::Redactor;
use ralph_gate::GateAuditRecord;
use serde::Serialize;

use super::egress_summary::EgressSummarizer;

/// The log file of a gate's decisions. It is created with its first line.
pub struct EgressLog {
    path: PathBuf,
    redactor: Redactor,
    open: Mutex<Option<OpenEgressLog>>,
}

/// A line for one decision.
#[derive(Serialize)]
struct EgressRecord<'a> {
    #[serde(flatten)]
    record: &'a GateAuditRecord,
    /// The command that ran in the sandbox when the request ended, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
}

struct OpenEgressLog {
    file: File,
    summarizer: EgressSummarizer,
}

impl OpenEgressLog {
    /// Opens or creates the file with access only for its owner.
    fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(path)?;
        let summarizer = EgressSummarizer::resuming_after(file.metadata()?.len());
        Ok(Self { file, summarizer })
    }
}

impl EgressLog {
    /// Creates a log that writes to a file.
    pub fn new(path: PathBuf, redactor: Redactor) -> Self {
        Self {
            path,
            redactor,
            open: Mutex::default(),
        }
    }

    /// Adds a decision, either as a separate line or, if there are too many, to the summary of its
    /// host.
    pub(super) fn add(&self, record: &GateAuditRecord, command: Option<&str>) {
        self.log_failure(self.write(record, command));
    }

    /// Writes the summaries of all decisions that have no line yet.
    pub(super) fn flush(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = open.as_mut() {
            for summary in open.summarizer.drain() {
                let line = self.to_line(&summary);
                self.log_failure(line.and_then(|line| open.file.write_all(line.as_bytes())));
            }
        }
    }

    /// Logs a failed write. The connection has ended, so its decision cannot be changed.
    fn log_failure(&self, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::warn!(%error, "cannot write to `{}`", self.path.display());
        }
    }

    fn write(&self, record: &GateAuditRecord, command: Option<&str>) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            *open = Some(OpenEgressLog::open(&self.path)?);
        }
        let Some(open) = open.as_mut() else {
            return Ok(());
        };
        let line = self.to_line(&EgressRecord { record, command })?;
        if open.summarizer.takes_single_line(record, line.len() as u64) {
            return open.file.write_all(line.as_bytes());
        }
        match open.summarizer.count(record) {
            Some(summary) => open.file.write_all(self.to_line(&summary)?.as_bytes()),
            None => Ok(()),
        }
    }

    fn to_line(&self, value: &impl Serialize) -> io::Result<String> {
        let line = serde_json::to_string(value)?;
        Ok(format!(
            "{}\n",
            printable::escape_json(&self.redactor.redact(&line))
        ))
    }
}

impl Drop for EgressLog {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use ralph_core::id::RunId;
    use ralph_core::net::{EgressDecider, EgressDecision, EgressReason};
    use ralph_gate::{SandboxIdentity, SandboxListener};
    use serde_json::Value;

    use super::*;

    fn decision(host: &str, is_allowed: bool) -> GateAuditRecord {
        GateAuditRecord {
            at: Timestamp::UNIX_EPOCH,
            identity: SandboxIdentity {
                run: RunId::parse("run-1").unwrap(),
                sandbox: "docker".to_owned(),
            },
            listener: SandboxListener::Dns,
            host: host.to_owned(),
            port: 53,
            request: None,
            detail: None,
            decision: if is_allowed {
                EgressDecision::allowed(EgressReason::Listed, EgressDecider::Policy)
            } else {
                EgressDecision::denied(EgressReason::BlockedByAllowlist, EgressDecider::Policy)
            },
            status: None,
            bytes_out: 1,
            bytes_in: 0,
            duration_ms: 0,
        }
    }

    /// Writes decisions and returns the lines and the size of the file.
    fn write_and_read(decisions: impl Iterator<Item = GateAuditRecord>) -> (Vec<Value>, u64) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("egress.jsonl");
        let records = EgressLog::new(path.clone(), Redactor::new(Vec::new()));
        for decision in decisions {
            records.add(&decision, Some("pip \u{202e}install"));
        }
        drop(records);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains('\u{202e}'),
            "it changes the order of what is shown"
        );
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (lines.collect(), std::fs::metadata(&path).unwrap().len())
    }

    /// Returns the number of decisions with a verdict in the lines.
    fn count(lines: &[Value], verdict: &str) -> u64 {
        let lines = lines.iter().filter(|line| line["verdict"] == verdict);
        lines.map(|line| line["count"].as_u64().unwrap_or(1)).sum()
    }

    #[test]
    fn a_flood_of_denied_lookups_drops_no_allowed_request() {
        let flood = (0..144_000).map(|number| decision(&format!("x{number}.evil.example"), false));
        let (lines, bytes) = write_and_read(flood.enumerate().flat_map(|(number, denied)| {
            let allowed = (number % 1_000 == 999).then(|| decision("pypi.example", true));
            [Some(denied), allowed].into_iter().flatten()
        }));
        let allowed = lines.iter().filter(|line| line["host"] == "pypi.example");
        assert_eq!(allowed.count(), 144, "each has a line of its own");
        assert_eq!(count(&lines, "denied"), 144_000);
        assert!(bytes < 8 << 20, "{bytes}");
        let shared = lines
            .iter()
            .find(|line| line["examples"].is_array())
            .unwrap();
        assert_eq!(shared["host"], "");
    }

    #[test]
    fn a_flood_of_allowed_requests_is_counted_exactly_in_a_bounded_file() {
        let flood = (0..150_000).map(|number| decision(&format!("x{}.example", number % 7), true));
        let (lines, bytes) = write_and_read(flood);
        assert_eq!(count(&lines, "allowed"), 150_000);
        let sent = |line: &Value| line["bytes_out"].as_u64().unwrap();
        assert_eq!(lines.iter().map(sent).sum::<u64>(), 150_000);
        assert!(bytes < 33 << 20, "{bytes}");
    }

    #[test]
    fn refusals_get_single_lines_again_after_a_flood() {
        let mut late = decision("late.example", false);
        late.at += jiff::SignedDuration::from_hours(1);
        let flood = (0..10_000).map(|_| decision("evil.example", false));
        let (lines, _) = write_and_read(flood.chain([late]));
        assert_eq!(count(&lines, "denied"), 10_001);
        let late = lines.iter().find(|line| line["host"] == "late.example");
        assert!(late.unwrap().get("count").is_none());
    }
}

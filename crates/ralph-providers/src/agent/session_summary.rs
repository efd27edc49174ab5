//! State shared by the readers of all output formats.

use std::collections::VecDeque;

use ralph_core::ports::{AgentEnd, AgentEvent, AgentReport, ExecStatus};
use serde_json::Value;

use super::{failure, text};

/// The state of an agent session so far.
#[derive(Debug, Default)]
pub(super) struct SessionSummary {
    pub(super) report: AgentReport,
    /// The result, once the agent has reported it.
    end: Option<AgentEnd>,
    /// The failure that the agent is retrying, until it makes progress.
    trouble: Option<AgentEnd>,
    is_done: bool,
}

impl SessionSummary {
    /// Parses a line as an event; a line that is not an event counts as text.
    pub(super) fn parse_line(&mut self, line: &str) -> Result<Value, Vec<AgentEvent>> {
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() => Ok(event),
            _ if line.trim().is_empty() => Err(Vec::new()),
            _ => Err(vec![AgentEvent::Text {
                text: self.record_text(line),
            }]),
        }
    }

    /// Clears an earlier failure: the agent is working again.
    pub(super) fn record_progress(&mut self) {
        self.trouble = None;
        self.end = None;
        self.is_done = false;
    }

    /// Records text output.
    pub(super) fn record_text(&mut self, text: &str) -> String {
        let text = text::truncate_text(text);
        self.report.summary.clone_from(&text);
        text
    }

    /// Records a failure that the agent retries.
    pub(super) fn record_trouble(&mut self, trouble: AgentEnd) {
        self.trouble = Some(trouble);
    }

    /// Marks the retried failure as permanent: the session ends without waiting for the retries.
    pub(super) fn mark_permanent(&mut self) {
        self.is_done = true;
    }

    /// Records the final result.
    pub(super) fn record_end(&mut self, end: AgentEnd) {
        self.end = Some(end);
        self.is_done = true;
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Continues reading: another result follows, which replaces the recorded one.
    pub(super) fn expect_more(&mut self) {
        self.is_done = false;
    }

    pub(super) fn finish(&mut self, ended: ExecStatus, stderr: &str) -> (AgentEnd, AgentReport) {
        let report = std::mem::take(&mut self.report);
        // A failure being retried explains the exit better than the exit status, unless the sandbox
        // ended the process.
        let end = self.end.take().or_else(|| {
            let ended_by_sandbox = matches!(
                ended,
                ExecStatus::OutOfMemory | ExecStatus::DiskLimit | ExecStatus::OutputLimit
            );
            self.trouble.take().filter(|_| !ended_by_sandbox)
        });
        let end = end.unwrap_or_else(|| failure::from_exit(ended, stderr, &report.summary));
        (end, report)
    }
}

/// A bounded set of the most recent ids.
#[derive(Debug, Default)]
pub(super) struct RecentIds {
    ids: VecDeque<String>,
}

impl RecentIds {
    const MAX: usize = 64;

    /// Adds an id and returns whether it is new.
    pub(super) fn insert(&mut self, name: &str) -> bool {
        let name = text::short_label(name);
        if self.ids.contains(&name) {
            return false;
        }
        if self.ids.len() == Self::MAX {
            self.ids.pop_front();
        }
        self.ids.push_back(name);
        true
    }
}

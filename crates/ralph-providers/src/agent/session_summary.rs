//! What a reader remembers, the same for every form of output.

use std::collections::VecDeque;

use ralph_core::ports::{AgentEnd, AgentEvent, AgentReport, ExecStatus};
use serde_json::Value;

use super::{failure, text};

/// What an agent has said so far.
#[derive(Debug, Default)]
pub(super) struct SessionSummary {
    pub(super) report: AgentReport,
    /// How it went, once it has said so.
    end: Option<AgentEnd>,
    /// What it tries to get over, until it works on.
    trouble: Option<AgentEnd>,
    is_done: bool,
}

impl SessionSummary {
    /// Returns the event in a line; a line that is none is words.
    pub(super) fn parse_line(&mut self, line: &str) -> Result<Value, Vec<AgentEvent>> {
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() => Ok(event),
            _ if line.trim().is_empty() => Err(Vec::new()),
            _ => Err(vec![AgentEvent::Text {
                text: self.record_text(line),
            }]),
        }
    }

    /// It goes on working: earlier trouble is over.
    pub(super) fn record_progress(&mut self) {
        self.trouble = None;
        self.end = None;
        self.is_done = false;
    }

    /// It said something.
    pub(super) fn record_text(&mut self, words: &str) -> String {
        let words = text::truncate_text(words);
        self.report.summary.clone_from(&words);
        words
    }

    /// It tries again after this.
    pub(super) fn record_trouble(&mut self, trouble: AgentEnd) {
        self.trouble = Some(trouble);
    }

    /// It tries again after something that no repetition changes: nothing is worth waiting for.
    pub(super) fn mark_hopeless(&mut self) {
        self.is_done = true;
    }

    /// It says how it went, and that nothing follows.
    pub(super) fn record_end(&mut self, end: AgentEnd) {
        self.end = Some(end);
        self.is_done = true;
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// It has said how it went, but there is more to come.
    pub(super) fn expect_more(&mut self) {
        self.is_done = false;
    }

    pub(super) fn finish(&mut self, ended: ExecStatus, stderr: &str) -> (AgentEnd, AgentReport) {
        let report = std::mem::take(&mut self.report);
        // Trouble that it was in explains a death better than the death itself, unless the
        // sandbox had a reason of its own.
        let end = self.end.take().or_else(|| {
            let own_reason = matches!(
                ended,
                ExecStatus::OutOfMemory | ExecStatus::DiskLimit | ExecStatus::OutputLimit
            );
            self.trouble.take().filter(|_| !own_reason)
        });
        let end = end.unwrap_or_else(|| failure::from_exit(ended, stderr, &report.summary));
        (end, report)
    }
}

/// The names of things that are under way, only the newest if there are too many.
#[derive(Debug, Default)]
pub(super) struct RecentIds {
    ids: VecDeque<String>,
}

impl RecentIds {
    const MAX: usize = 64;

    /// Adds a name, and tells whether it is new.
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

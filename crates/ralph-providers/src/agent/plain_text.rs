//! Reads the output of agents that print plain text.

use ralph_core::ports::{AgentEnd, AgentEvent, AgentReader, AgentReport, ExecStatus};

use super::failure;
use super::session_summary::SessionSummary;

/// The exit status `EX_TEMPFAIL`: the program could not reach its model and should be restarted
/// later.
const TEMPORARY_FAILURE: i32 = 75;

/// Treats every line as text; the exit status alone determines the result.
#[derive(Debug, Default)]
pub(super) struct PlainTextReader {
    summary: SessionSummary,
    has_started: bool,
}

impl AgentReader for PlainTextReader {
    fn parse_line(&mut self, line: &str) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        if !self.has_started {
            self.has_started = true;
            events.push(AgentEvent::Started { model: None });
        }
        if !line.trim().is_empty() {
            let text = self.summary.record_text(line);
            events.push(AgentEvent::Text { text });
        }
        events
    }

    fn is_done(&self) -> bool {
        false
    }

    fn finish(&mut self, ended: ExecStatus, stderr: &str) -> (AgentEnd, AgentReport) {
        if ended.is_success() {
            self.summary.record_end(AgentEnd::Finished);
        }
        if ended == ExecStatus::Exited(TEMPORARY_FAILURE) {
            let why = failure::exit_reason(ended, stderr, &self.summary.report.summary);
            self.summary.record_end(AgentEnd::Overloaded { why });
        }
        self.summary.finish(ended, stderr)
    }
}

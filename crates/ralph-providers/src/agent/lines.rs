//! A program that prints for people.

use ralph_core::ports::{AgentEnd, AgentEvent, AgentReader, AgentReport, Ended};

use super::failure;
use super::story::Story;

/// The exit status `EX_TEMPFAIL`: the program could not reach its model and wants to be started again later.
const TEMPORARY_FAILURE: i32 = 75;

/// Takes every line as words; only how the process ended tells how it went.
#[derive(Debug, Default)]
pub(super) struct Reader {
    story: Story,
    has_begun: bool,
}

impl AgentReader for Reader {
    fn line(&mut self, line: &str) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        if !self.has_begun {
            self.has_begun = true;
            events.push(AgentEvent::Started { model: None });
        }
        if !line.trim().is_empty() {
            let text = self.story.says(line);
            events.push(AgentEvent::Text { text });
        }
        events
    }

    fn is_done(&self) -> bool {
        false
    }

    fn finish(&mut self, ended: Ended, stderr: &str) -> (AgentEnd, AgentReport) {
        if ended.is_success() {
            self.story.ends(AgentEnd::Finished);
        }
        if ended == Ended::Exited(TEMPORARY_FAILURE) {
            let why = failure::reason(ended, stderr, &self.story.report.summary);
            self.story.ends(AgentEnd::Overloaded { why });
        }
        self.story.finish(ended, stderr)
    }
}

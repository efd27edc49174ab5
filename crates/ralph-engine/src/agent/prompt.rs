//! What an agent is told: where things are, what is open, what went wrong, what people said.

use ralph_core::prompt::{self, AgentSnapshot};

use crate::error::RunError;
use crate::run::Run;

impl Run {
    /// Builds the prompt of the open iteration.
    pub(super) fn agent_prompt(&self) -> Result<String, RunError> {
        let state = self.state();
        let task = self.pinned.task();
        let snapshot = AgentSnapshot {
            iteration: state.iteration,
            task_file: "ralph_task.md".into(),
            open_boxes: task
                .checkboxes
                .iter()
                .filter(|checkbox| !state.ticked.contains(&checkbox.id))
                .map(|checkbox| {
                    if checkbox.has_own_id {
                        checkbox.label()
                    } else {
                        format!("{} (its id is `{}`)", checkbox.text, checkbox.id)
                    }
                })
                .collect(),
            test_command: self.pinned.contract().test_command.clone(),
            already_green: state
                .baseline
                .as_ref()
                .map(|baseline| baseline.green.clone())
                .unwrap_or_default(),
            refusals: state.refusals.clone(),
            errors_tail: self.files.errors_tail()?,
            messages: state
                .messages_for_prompt()
                .map(|message| message.text.clone())
                .collect(),
        };
        let prompt = prompt::build_agent(&snapshot);
        Ok(self.services.redactor.redact(&prompt).into_owned())
    }
}

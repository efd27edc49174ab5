//! The prompt of an agent: file locations, open boxes, errors, messages of the user.

use ralph_core::prompt::{self, AgentSnapshot};

use crate::contract::PinnedTask;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::workspace::SPEC_FILE;

/// Builds the prompt of the open iteration.
pub(super) fn agent_prompt(recorder: &Recorder, pinned: &PinnedTask) -> Result<String, RunError> {
    let state = recorder.state();
    let task = pinned.task();
    let snapshot = AgentSnapshot {
        iteration: state.iteration,
        task_file: "ralph_task.md".into(),
        spec_file: (state.plan.issue.as_ref()).map(|_| format!(".ralph/{SPEC_FILE}")),
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
        test_command: pinned.contract().test_command.clone(),
        already_green: state
            .baseline
            .as_ref()
            .map(|baseline| baseline.green.clone())
            .unwrap_or_default(),
        refusals: state.refusals.clone(),
        errors_tail: recorder.files.errors_tail()?,
        messages: state
            .messages_for_prompt()
            .map(|message| message.text.clone())
            .collect(),
    };
    let prompt = prompt::build_agent(&snapshot);
    Ok(recorder.redactor.redact(&prompt).into_owned())
}

//! What a prompt is made of: the host's copies of the files, and the last look at the workspace.

use ralph_core::action;
use ralph_core::ports::{ExecStatus, ModelRequest};
use ralph_core::prompt::{self, GitSummary, LastOutput, LastTests, PromptSnapshot};
use ralph_core::task::Checkbox;

use crate::durable;
use crate::error::RunError;
use crate::run::Run;

impl Run {
    /// Builds the prompt of the open iteration.
    pub(super) fn build_request(&self) -> Result<ModelRequest, RunError> {
        let request = prompt::build(&self.prompt_snapshot()?);
        Ok(self.redact_request(request))
    }

    /// Redacts the part of a request that quotes files, output and replies.
    pub(super) fn redact_request(&self, request: ModelRequest) -> ModelRequest {
        ModelRequest {
            user: self.services.redactor.redact(&request.user).into_owned(),
            ..request
        }
    }

    fn prompt_snapshot(&self) -> Result<PromptSnapshot, RunError> {
        let state = self.state();
        let tree = &self.workspace_view.tree;
        let iteration = state.iteration;
        let last = iteration.saturating_sub(1);
        Ok(PromptSnapshot {
            task: self.pinned.task().with_ticks(&state.ticked),
            open_boxes: self.boxes_to_show(),
            guardrails: self.files.text("guardrails.md")?,
            progress: self.files.text("progress.md")?,
            notes: Some(self.files.text("notes.md")?),
            errors_tail: self.files.errors_tail()?,
            git: GitSummary {
                branch: state.plan.branch.clone(),
                head: state.head.short().to_owned(),
                status: tree
                    .entries
                    .iter()
                    .take(100)
                    .map(|(code, path)| format!("{code} {path}"))
                    .collect(),
                status_total: tree.entries.len(),
                diff_stat: self.workspace_view.diff_stat.clone(),
                last_commits: self.workspace_view.subjects.clone(),
                diff_file: if last > 0 {
                    format!(".ralph/iterations/{last}/git_diff.patch")
                } else {
                    String::new()
                },
            },
            last_output: self.last_output(last)?,
            already_green: state
                .baseline
                .as_ref()
                .map(|baseline| baseline.green.clone())
                .unwrap_or_default(),
            refusals: state.refusals.clone(),
            limits: self.pinned.contract().limits(),
            spent: self.spent(),
            iteration,
            loop_scores: state.loop_scores.clone(),
            circling: self.circling_signals(),
            messages: state
                .messages_for_prompt()
                .map(|message| message.text.clone())
                .collect(),
            schema: action::SCHEMA_TEXT.to_owned(),
        })
    }

    /// Returns the open boxes with their ids, if the task file itself does not say all of these ids.
    fn boxes_to_show(&self) -> Vec<String> {
        let (task, ticked) = (self.pinned.task(), &self.state().ticked);
        let is_nameless = |it: &Checkbox| !it.has_own_id && !ticked.contains(&it.id);
        if task.checkboxes.iter().any(is_nameless) {
            task.open_boxes(ticked)
        } else {
            Vec::new()
        }
    }

    /// Returns why the last iteration was a gutter.
    fn circling_signals(&self) -> Vec<String> {
        let metrics = self.state().last_metrics.as_ref();
        let report = metrics.and_then(|metrics| metrics.gutter.as_ref());
        let gutter = report.filter(|report| report.step.is_some());
        gutter.map_or_else(Vec::new, |report| {
            report.signals.iter().map(ToString::to_string).collect()
        })
    }

    fn last_output(&self, last: u32) -> Result<Option<LastOutput>, RunError> {
        let path = self.dir.iteration(last).join("test_output.txt");
        let output_tail = durable::tail(&path, 64 << 10)?;
        if output_tail.is_empty() {
            return Ok(None);
        }
        let code = self
            .state()
            .last_metrics
            .as_ref()
            .and_then(|metrics| metrics.test_exit_code);
        let command = self.pinned.contract().test_command.clone();
        let tests = command.zip(code).map(|(command, code)| LastTests {
            command,
            ended: ExecStatus::Exited(code),
        });
        let file = format!(".ralph/iterations/{last}/test_output.txt");
        Ok(Some(LastOutput {
            tests,
            output_tail,
            file,
        }))
    }
}

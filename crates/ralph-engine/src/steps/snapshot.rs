//! The input of a prompt: the host's copies of the files, and the last view of the workspace.

use ralph_core::action;
use ralph_core::ports::{ExecStatus, ModelRequest};
use ralph_core::prompt::{self, GitSummary, LastOutput, LastTests, PromptSnapshot};
use ralph_core::task::Checkbox;

use crate::contract::PinnedTask;
use crate::durable;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::workbench::Workbench;

/// Builds the prompt of the open iteration.
pub(super) fn build_request(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> Result<ModelRequest, RunError> {
    let request = prompt::build(&prompt_snapshot(recorder, bench, pinned)?);
    Ok(redact_request(recorder, request))
}

/// Redacts the part of a request that quotes files, output and replies.
pub(super) fn redact_request(recorder: &Recorder, request: ModelRequest) -> ModelRequest {
    ModelRequest {
        user: recorder.redactor.redact(&request.user).into_owned(),
        ..request
    }
}

fn prompt_snapshot(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> Result<PromptSnapshot, RunError> {
    let state = recorder.state();
    let tree = &bench.view.tree;
    let iteration = state.iteration;
    let last = iteration.saturating_sub(1);
    Ok(PromptSnapshot {
        task: pinned.task().with_ticks(&state.ticked),
        open_boxes: boxes_to_show(recorder, pinned),
        guardrails: recorder.files.text("guardrails.md")?,
        progress: recorder.files.text("progress.md")?,
        notes: Some(recorder.files.text("notes.md")?),
        errors_tail: recorder.files.errors_tail()?,
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
            diff_stat: bench.view.diff_stat.clone(),
            last_commits: bench.view.subjects.clone(),
            diff_file: if last > 0 {
                format!(".ralph/iterations/{last}/git_diff.patch")
            } else {
                String::new()
            },
        },
        last_output: last_output(recorder, pinned, last)?,
        already_green: state
            .baseline
            .as_ref()
            .map(|baseline| baseline.green.clone())
            .unwrap_or_default(),
        refusals: state.refusals.clone(),
        limits: recorder.limits().clone(),
        spent: recorder.spent(),
        iteration,
        loop_scores: state.loop_scores.clone(),
        circling: circling_signals(recorder),
        messages: state
            .messages_for_prompt()
            .map(|message| message.text.clone())
            .collect(),
        schema: action::SCHEMA_TEXT.to_owned(),
    })
}

/// Returns the open boxes with their ids, if the task file does not contain all of these ids.
fn boxes_to_show(recorder: &Recorder, pinned: &PinnedTask) -> Vec<String> {
    let (task, ticked) = (pinned.task(), &recorder.state().ticked);
    let is_nameless = |it: &Checkbox| !it.has_own_id && !ticked.contains(&it.id);
    if task.checkboxes.iter().any(is_nameless) {
        task.open_boxes(ticked)
    } else {
        Vec::new()
    }
}

/// Returns the signals for which the last iteration was a gutter.
fn circling_signals(recorder: &Recorder) -> Vec<String> {
    let metrics = recorder.state().last_metrics.as_ref();
    let report = metrics.and_then(|metrics| metrics.gutter.as_ref());
    let gutter = report.filter(|report| report.step.is_some());
    gutter.map_or_else(Vec::new, |report| {
        report.signals.iter().map(ToString::to_string).collect()
    })
}

fn last_output(
    recorder: &Recorder,
    pinned: &PinnedTask,
    last: u32,
) -> Result<Option<LastOutput>, RunError> {
    let path = recorder.dir.iteration(last).join("test_output.txt");
    let output_tail = durable::tail(&path, 64 << 10)?;
    if output_tail.is_empty() {
        return Ok(None);
    }
    let code = recorder
        .state()
        .last_metrics
        .as_ref()
        .and_then(|metrics| metrics.test_exit_code);
    let command = pinned.contract().test_command.clone();
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

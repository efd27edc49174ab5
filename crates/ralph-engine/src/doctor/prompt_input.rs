//! The input of the doctor: the host's files and figures of the last iterations, each bounded.

use std::io;
use std::path::Path;

use ralph_core::doctor::DoctorPromptInput;
use ralph_core::event::IterationMetrics;
use ralph_core::gutter::{GutterSignal, IterationFacts};

use crate::contract::PinnedTask;
use crate::durable;
use crate::error::RunError;
use crate::recorder::Recorder;

/// The most iterations whose metrics are included.
const MAX_ITERATIONS: u32 = 5;
/// The most bytes of the last output that are read.
const MAX_OUTPUT: u64 = 64 << 10;
/// The largest `metrics.json` that is read.
const MAX_METRICS: u64 = 1 << 20;

/// Collects the input of the doctor.
pub(super) fn build_prompt_input(
    recorder: &Recorder,
    pinned: &PinnedTask,
) -> Result<DoctorPromptInput, RunError> {
    let state = recorder.state();
    let last = state.iteration;
    let output = recorder.dir.iteration(last).join("test_output.txt");
    let report = state.last_metrics.as_ref();
    let report = report.and_then(|metrics| metrics.gutter.as_ref());
    let profile = state.profile.clone();
    Ok(DoctorPromptInput {
        task: pinned.task().with_ticks(&state.ticked),
        guardrails: recorder.files.text("guardrails.md")?,
        signals: report.map_or_else(Vec::new, |report| {
            report.signals.iter().map(ToString::to_string).collect()
        }),
        metrics: (last.saturating_sub(MAX_ITERATIONS - 1).max(1)..=last)
            .filter_map(|number| iteration_summary(recorder, number))
            .collect(),
        errors_tail: recorder.files.errors_tail()?,
        output_tail: durable::tail(&output, MAX_OUTPUT)?,
        diff_stat: state
            .window
            .last()
            .map(describe_changes)
            .unwrap_or_default(),
        iteration: last,
        profile: profile.or_else(|| pinned.contract().model_profile_default.clone()),
    })
}

/// Returns the figures of an iteration in a line; none if its `metrics.json` cannot be used.
fn iteration_summary(recorder: &Recorder, number: u32) -> Option<String> {
    let path = recorder.dir.iteration(number).join("metrics.json");
    let metrics = match read_metrics(&path) {
        Ok(metrics) => metrics?,
        Err(error) => {
            tracing::warn!("cannot read `{}`: {error}", path.display());
            return None;
        }
    };
    let report = metrics.gutter.as_ref();
    let signals = report.map(|report| report.signals.iter().map(GutterSignal::name).collect());
    let signals: Vec<&str> = signals.unwrap_or_default();
    let line = serde_json::json!({
        "iteration": metrics.iteration,
        "loop_score": metrics.loop_score,
        "signals": signals,
        "actions": metrics.actions,
        "actions_ok": metrics.actions_ok,
        "diff": metrics.diff,
        "test_exit_code": metrics.test_exit_code,
        "tests": metrics.tests,
        "boxes_ticked": metrics.boxes_ticked,
        "boxes_total": metrics.boxes_total,
    });
    Some(line.to_string())
}

fn describe_changes(facts: &IterationFacts) -> String {
    let files = facts.files.iter().map(|file| {
        let verb = if file.after.is_some() {
            "changed"
        } else {
            "deleted"
        };
        format!("{verb} {}", file.path)
    });
    let sum = format!("{} lines changed", facts.changed_lines);
    files.chain([sum]).collect::<Vec<String>>().join("\n")
}

/// Reads the figures of an iteration; none if the file does not exist or is too large.
fn read_metrics(path: &Path) -> io::Result<Option<IterationMetrics>> {
    let size = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if size > MAX_METRICS {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&std::fs::read(path)?)?))
}

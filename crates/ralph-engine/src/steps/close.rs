//! The end of an iteration: its seven files are synced on the host and copied into the sandbox.

use std::collections::{BTreeMap, BTreeSet};

use ralph_core::event::{DiffSize, Event, IterationEvent, IterationMetrics};
use ralph_core::gutter::{CodeChange, LoopScore};
use ralph_core::run::RunStatus;
use ralph_core::verdict::CheckResult;

use super::circling::measure_progress;
use super::responses::write_empty_responses_if_missing;
use crate::actions::Performed;
use crate::artifacts::sync_artifacts;
use crate::contract::PinnedTask;
use crate::durable;
use crate::error::RunError;
use crate::git::IterationChange;
use crate::journal::millis;
use crate::live_output;
use crate::messages::acknowledged_messages;
use crate::recorder::Recorder;
use crate::run::Run;

/// In-memory state of the open iteration. After a crash it is determined again.
#[derive(Debug, Default)]
pub(crate) struct IterationScratch {
    /// Whether a crashed process started the iteration, so that its in-memory results are lost.
    pub(crate) resumed: bool,
    /// Results of checks that are valid while the files stay the same, by command.
    pub(crate) checks: BTreeMap<String, CheckResult>,
    pub(crate) tests: Option<CheckResult>,
    /// Whether the files differ from the end of the last iteration; always true if `resumed`.
    pub(crate) changed: bool,
    /// The changes of the iteration alone.
    pub(crate) diff: DiffSize,
    /// Lines added and removed since the commit at the start, with the uncommitted changes of
    /// earlier iterations.
    pub(crate) lines_since_commit: u64,
    pub(crate) newly_ticked: usize,
    /// The same changes by file, and the resulting tree.
    pub(crate) change: IterationChange,
    pub(crate) code: Option<CodeChange>,
    pub(crate) milestone_reached: bool,
}

/// Writes the last files, copies all seven into the sandbox, and records the end of the iteration.
pub(crate) async fn close_iteration(
    run: &mut Run,
    summary: String,
    performed: Performed,
    then: Option<RunStatus>,
) -> Result<(), RunError> {
    let number = run.recorder.state().iteration;
    let circling = measure_progress(
        &mut run.recorder,
        &run.services,
        &run.pinned,
        &run.scratch,
        &performed.outcome,
        then,
    )?;
    let metrics = IterationMetrics {
        loop_score: circling.score.map(LoopScore::value),
        gutter: circling.report.clone().map(Box::new),
        ..iteration_metrics(&run.recorder, &run.pinned, &run.scratch, &performed)
    };
    let open = run.recorder.dir.open_iteration(number);
    run.recorder.write_json("metrics.json", &metrics)?;
    let none = serde_json::json!({});
    match &run.recorder.state().pull {
        Some(pull) => run.recorder.write_json("pr_state.json", pull)?,
        None => run.recorder.write_json("pr_state.json", &none)?,
    }
    run.recorder
        .log_activity(&format!("iteration {number} ends: {summary}"))?;
    write_empty_responses_if_missing(&run.recorder)?;
    // Before the directory is synced: a closed iteration has no live output, even after a power cut.
    live_output::remove(&run.recorder.dir.live_output(number))?;
    let files = sync_artifacts(&run.recorder, &run.bench, number).await?;
    run.bench.project(&run.recorder.files).await?;
    // The next iteration continues from these files, even after a power cut.
    run.bench.sandbox.sync().await?;
    durable::rename(&open, &run.recorder.dir.iteration(number))?;
    let finished = Event::Iteration(IterationEvent::IterationFinished {
        iteration: number,
        summary,
        outcome: performed.outcome,
        metrics: Box::new(metrics),
        files,
        logs: run.recorder.files.marks()?,
        then: circling.next_status.clone(),
    });
    let gutter_event = circling.event(number);
    // The messages of an agent were acknowledged when it ended.
    let is_read = run
        .recorder
        .state()
        .open
        .as_ref()
        .is_some_and(|open| open.accepted);
    let acknowledged = is_read.then(|| acknowledged_messages(&run.recorder));
    let events = acknowledged.into_iter().flatten();
    run.recorder
        .append_all(events.chain([finished]).chain(gutter_event))?;
    run.scratch = IterationScratch::default();
    Ok(())
}

fn iteration_metrics(
    recorder: &Recorder,
    pinned: &PinnedTask,
    scratch: &IterationScratch,
    performed: &Performed,
) -> IterationMetrics {
    let state = recorder.state();
    let open = state.open.as_ref();
    let active = recorder.journal.active();
    let took = open.map(|open| active.saturating_sub(open.active_before));
    let boxes: BTreeSet<&str> = pinned
        .task()
        .checkboxes
        .iter()
        .map(|b| b.id.as_str())
        .collect();
    IterationMetrics {
        iteration: state.iteration,
        duration_ms: took.map_or(0, millis),
        model_ms: open.map_or(0, |open| open.model_ms),
        command_ms: open.map_or(0, |open| open.command_ms),
        model_calls: open.map_or(0, |open| open.attempts),
        usage: open.map(|open| open.usage).unwrap_or_default(),
        cost_usd: open.map(|open| open.cost).unwrap_or_default(),
        repaired: performed.repaired,
        actions: performed.total,
        actions_ok: performed.succeeded,
        prompt_bytes: open.map_or(0, |open| open.prompt_bytes),
        diff: scratch.diff,
        test_exit_code: scratch.tests.as_ref().map(|check| check.ended.exit_code()),
        tests: scratch.tests.as_ref().and_then(|check| check.tests),
        boxes_ticked: state
            .ticked
            .iter()
            .filter(|id| boxes.contains(id.as_str()))
            .count(),
        boxes_total: boxes.len(),
        loop_score: None,
        gutter: None,
        head: state.head.clone(),
    }
}

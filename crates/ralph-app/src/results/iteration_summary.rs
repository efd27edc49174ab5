//! A summary of each iteration, for lists and charts.

use std::collections::BTreeMap;

use ralph_core::event::{Event, IterationEvent, IterationMetrics, IterationOutcome};
use ralph_engine::journal;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::AppError;

/// What happened in an iteration, without its files.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct IterationSummary {
    /// Counted from 1.
    pub iteration: u32,
    pub started_at: jiff::Timestamp,
    /// `None` while the iteration is in progress.
    pub finished_at: Option<jiff::Timestamp>,
    pub outcome: Option<IterationOutcome>,
    /// The summary of the model or agent; empty while the iteration is in progress.
    pub summary: String,
    /// Cost, tokens, tests, duration and loop score, without the parts of the score.
    pub metrics: Option<IterationMetrics>,
    /// The signals of the loop score, each in a sentence.
    pub evidence: Vec<String>,
    /// The countermeasure against circling, if there was one.
    pub mitigation: Option<String>,
}

/// Returns a summary of every iteration that was started, in order.
pub fn iteration_summaries(dir: &RunDir) -> Result<Vec<IterationSummary>, AppError> {
    let mut summaries: BTreeMap<u32, IterationSummary> = BTreeMap::new();
    for record in journal::read(&dir.journal())? {
        let Event::Iteration(event) = record.event else {
            continue;
        };
        match event {
            IterationEvent::IterationStarted { iteration, .. } => {
                let started = summaries.entry(iteration);
                started.or_insert_with(|| IterationSummary::started(iteration, record.at));
            }
            IterationEvent::IterationFinished {
                iteration,
                summary,
                outcome,
                metrics,
                ..
            } => {
                let started = summaries.entry(iteration);
                let started =
                    started.or_insert_with(|| IterationSummary::started(iteration, record.at));
                started.finish(record.at, (summary, outcome), *metrics);
            }
            IterationEvent::ActionStarted { .. }
            | IterationEvent::ActionFinished { .. }
            | IterationEvent::ClaimChecked { .. }
            | IterationEvent::BoxesTicked { .. }
            | IterationEvent::TestsRun { .. }
            | IterationEvent::Gutter { .. } => {}
        }
    }
    Ok(summaries.into_values().collect())
}

impl IterationSummary {
    fn started(iteration: u32, at: jiff::Timestamp) -> Self {
        Self {
            iteration,
            started_at: at,
            finished_at: None,
            outcome: None,
            summary: String::new(),
            metrics: None,
            evidence: Vec::new(),
            mitigation: None,
        }
    }

    fn finish(
        &mut self,
        at: jiff::Timestamp,
        (summary, outcome): (String, IterationOutcome),
        mut metrics: IterationMetrics,
    ) {
        if let Some(gutter) = metrics.gutter.take() {
            self.evidence = gutter.signals.iter().map(ToString::to_string).collect();
            self.mitigation = gutter.step.map(|step| step.to_string());
        }
        self.finished_at = Some(at);
        self.outcome = Some(outcome);
        self.summary = summary;
        self.metrics = Some(metrics);
    }
}

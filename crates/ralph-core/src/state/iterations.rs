//! The iterations of a run: what they cost, what they changed, and what they say about circling.

use std::time::Duration;

use super::{OpenIteration, RunState};
use crate::event::{DiffSize, Event, IterationMetrics, JournalRecord};
use crate::mitigation::MitigationStep;

impl RunState {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`apply` decides exhaustively which events come here"
    )]
    pub(super) fn apply_iteration(&mut self, record: &JournalRecord) {
        match &record.event {
            Event::IterationStarted { iteration, head } => {
                self.iteration = *iteration;
                let active = Duration::from_millis(record.active_ms);
                self.open = Some(OpenIteration::new(*iteration, head.clone(), active));
            }
            Event::ModelAsked { .. } | Event::AgentStarted { .. } => self.record_prompt(),
            Event::ModelReplied {
                usage,
                cost_usd,
                source,
                ..
            } => {
                self.usage.add(*usage);
                self.cost += *cost_usd;
                self.used_script_lines.extend(source.clone());
            }
            Event::ModelAbandoned {
                usage, cost_usd, ..
            }
            | Event::AgentCharged {
                usage, cost_usd, ..
            } => {
                self.usage.add(*usage);
                self.cost += *cost_usd;
            }
            Event::IterationFinished {
                metrics,
                then,
                outcome,
                ..
            } => {
                if outcome.is_attributable_to_model() {
                    self.count_idle(metrics);
                }
                self.open = None;
                self.next_status.clone_from(then);
                if self.refused_in_iteration < metrics.iteration {
                    self.refusals.clear();
                }
                self.loop_scores.extend(metrics.loop_score);
                let surplus = self.loop_scores.len().saturating_sub(5);
                self.loop_scores.drain(..surplus);
                self.update_circling(metrics);
                self.last_metrics = Some(metrics.clone());
                return;
            }
            _ => {}
        }
        if let Some(open) = &mut self.open {
            open.apply(&record.event);
        }
    }

    /// Counts an iteration that neither committed, nor changed a file, nor ticked a box.
    fn count_idle(&mut self, metrics: &IterationMetrics) {
        let before = self.last_metrics.as_ref();
        let ticked_before = before.map_or(0, |last| last.boxes_ticked);
        let head_before = self.open.as_ref().map(|open| &open.head);
        // What was left uncommitted before is no change of this iteration.
        let is_unchanged = match &metrics.gutter {
            Some(report) => report.facts.files.is_empty() && report.facts.changed_lines == 0,
            None => metrics.diff == DiffSize::default(),
        };
        let is_idle = is_unchanged
            && head_before == Some(&metrics.head)
            && metrics.boxes_ticked == ticked_before;
        self.idle = if is_idle { self.idle + 1 } else { 0 };
    }

    /// Takes in what an iteration says about circling.
    fn update_circling(&mut self, metrics: &IterationMetrics) {
        let Some(report) = &metrics.gutter else {
            return;
        };
        self.window.push(report.facts.clone());
        self.ladder = report.ladder;
        match &report.step {
            Some(MitigationStep::Fallback { profile }) => self.request_profile(profile),
            Some(MitigationStep::Doctor) => self.doctor.due = true,
            Some(MitigationStep::Rotate | MitigationStep::Pause | MitigationStep::Fail) | None => {}
        }
    }
}

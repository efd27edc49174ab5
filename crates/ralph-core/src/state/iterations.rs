//! The iterations of a run: their cost, their changes, and their facts about circling.

use std::time::Duration;

use super::{FallbackAgentUse, OpenIteration, RunState};
use crate::event::{AgentSessionEvent, DiffSize, IterationEvent, IterationMetrics, ModelEvent};
use crate::mitigation::MitigationStep;
use crate::money::Usd;
use crate::ports::TokenUsage;

impl RunState {
    pub(super) fn apply_iteration(&mut self, event: &IterationEvent, active: Duration) {
        match event {
            IterationEvent::IterationStarted { iteration, head } => {
                self.iteration = *iteration;
                let pending = self.pending_commands.iter();
                self.unread_advice = pending.filter(|(_, command)| command.is_advice()).count();
                self.open = Some(OpenIteration::new(*iteration, head.clone(), active));
            }
            IterationEvent::ActionStarted { action, label, .. } => {
                if action == "run" {
                    self.running_command = Some(label.clone());
                }
            }
            IterationEvent::ActionFinished { .. }
            | IterationEvent::ClaimChecked { .. }
            | IterationEvent::TestsRun { .. } => self.running_command = None,
            IterationEvent::BoxesTicked { ticked } => {
                self.ticked = ticked.iter().cloned().collect();
            }
            IterationEvent::IterationFinished {
                metrics,
                then,
                outcome,
                ..
            } => {
                self.running_command = None;
                if outcome.is_attributable_to_model() {
                    self.count_idle(metrics);
                }
                self.next_status.clone_from(then);
                self.close_iteration(metrics);
            }
            IterationEvent::Gutter { .. } => {}
        }
        if let Some(open) = &mut self.open {
            open.apply_iteration(event);
        }
    }

    pub(super) fn apply_model(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::ModelAsked { .. } => self.record_prompt(),
            ModelEvent::ModelReplied {
                usage,
                cost_usd,
                source,
                ..
            } => {
                self.charge_iteration(*usage, *cost_usd);
                self.used_script_lines.extend(source.clone());
            }
            ModelEvent::ModelAbandoned {
                usage, cost_usd, ..
            } => self.charge_iteration(*usage, *cost_usd),
            ModelEvent::ModelFailed { .. }
            | ModelEvent::ReplyRejected { .. }
            | ModelEvent::ReplyAccepted { .. } => {}
        }
        if let Some(open) = &mut self.open {
            open.apply_model(event);
        }
    }

    pub(super) fn apply_agent(&mut self, event: &AgentSessionEvent, active: Duration) {
        match event {
            AgentSessionEvent::AgentStarted { agent, .. } => {
                self.running_command = Some(format!("the agent {agent}"));
                self.record_prompt();
            }
            AgentSessionEvent::AgentCharged {
                usage, cost_usd, ..
            } => self.charge_iteration(*usage, *cost_usd),
            AgentSessionEvent::AgentSwitched { iteration, .. } => {
                self.fallback_agent = FallbackAgentUse::Since(*iteration);
            }
            AgentSessionEvent::AgentFinished { .. } => self.running_command = None,
            AgentSessionEvent::AgentMeasured { measured, .. } => self.measured.add(measured),
            AgentSessionEvent::AgentDid { .. } => {}
        }
        if let Some(open) = &mut self.open {
            open.apply_agent(event, active);
        }
    }

    pub(super) fn charge(&mut self, usage: TokenUsage, cost: Usd) {
        self.usage.add(usage);
        self.cost += cost;
    }

    /// Charges the run and its open iteration.
    fn charge_iteration(&mut self, usage: TokenUsage, cost: Usd) {
        self.charge(usage, cost);
        if let Some(open) = &mut self.open {
            open.usage.add(usage);
            open.cost += cost;
        }
    }

    fn close_iteration(&mut self, metrics: &IterationMetrics) {
        self.open = None;
        if self.refused_in_iteration < metrics.iteration {
            self.refusals.clear();
        }
        self.loop_scores.extend(metrics.loop_score);
        let surplus = self.loop_scores.len().saturating_sub(5);
        self.loop_scores.drain(..surplus);
        self.update_circling(metrics);
        self.last_metrics = Some(Box::new(metrics.clone()));
    }

    /// Counts an iteration that neither committed, nor changed a file, nor ticked a box.
    fn count_idle(&mut self, metrics: &IterationMetrics) {
        let before = self.last_metrics.as_ref();
        let ticked_before = before.map_or(0, |last| last.boxes_ticked);
        let head_before = self.open.as_ref().map(|open| &open.head);
        // Changes that an earlier iteration left uncommitted do not count.
        let is_unchanged = match &metrics.gutter {
            Some(report) => report.facts.files.is_empty() && report.facts.changed_lines == 0,
            None => metrics.diff == DiffSize::default(),
        };
        let is_idle = is_unchanged
            && head_before == Some(&metrics.head)
            && metrics.boxes_ticked == ticked_before;
        self.idle = if is_idle { self.idle + 1 } else { 0 };
    }

    /// Applies the circling report in the metrics of an iteration.
    fn update_circling(&mut self, metrics: &IterationMetrics) {
        let Some(report) = &metrics.gutter else {
            return;
        };
        self.window.push(report.facts.clone());
        self.ladder = report.ladder;
        match &report.step {
            Some(MitigationStep::Fallback { profile }) => self.request_profile(profile),
            Some(MitigationStep::FallbackAgent { .. }) => {
                self.fallback_agent = FallbackAgentUse::Wanted;
            }
            Some(MitigationStep::Doctor) => self.doctor.due = true,
            Some(MitigationStep::Rotate | MitigationStep::Pause | MitigationStep::Fail) | None => {}
        }
    }
}

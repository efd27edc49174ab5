//! Derives spans from the records of a run: the run, its iterations, model calls, agent sessions, actions and checks.
//!
//! Spans contain names and numbers, and no prompt, reply, command or path. The ids are computed from the run and the
//! number of the record, so a span that is sent twice is the same span.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ralph_core::event::{
    AgentSessionEvent, Event, IterationEvent, JournalRecord, ModelEvent, RunEvent,
    VerificationEvent,
};
use ralph_core::id::{Digest, RunId};
use ralph_core::ports::TokenUsage;
use ralph_core::state::RunState;
use ralph_core::verdict::CheckResult;

use super::counters::outcome_name;
use super::otlp::{Span, SpanStatus, SpanValue};

/// The most spans that can be open at the same time; a damaged journal opens no more.
const MAX_OPEN: usize = 256;

/// The spans of one run.
#[derive(Debug)]
pub struct RunSpans {
    run: RunId,
    trace: String,
    root: String,
    /// The start and the attributes of the whole run.
    started_at: Timestamp,
    attributes: Vec<(&'static str, SpanValue)>,
    open: BTreeMap<OpenKey, OpenSpan>,
}

/// What an open span measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OpenKey {
    Iteration,
    Model,
    Agent,
    Action(usize),
    Verification,
    Baseline,
}

#[derive(Debug)]
struct OpenSpan {
    id: String,
    start: Timestamp,
}

impl RunSpans {
    /// Starts with the state of a run that this process opened.
    pub fn new(state: &RunState) -> Self {
        let plan = &state.plan;
        let digest = Digest::compute(plan.run.as_str().as_bytes());
        let (trace, rest) = digest.as_str().split_at(32);
        let text = |text: &str| SpanValue::Text(text.to_owned());
        let mut attributes = vec![
            ("ralph.run", text(plan.run.as_str())),
            ("ralph.task", text(&plan.task_id.to_string())),
            ("ralph.sandbox", text(&plan.sandbox)),
        ];
        if let Some(agent) = &plan.agent {
            attributes.push(("ralph.agent", text(&agent.name)));
        }
        Self {
            run: plan.run.clone(),
            trace: trace.to_owned(),
            root: rest[..16].to_owned(),
            started_at: state.started_at,
            attributes,
            open: BTreeMap::new(),
        }
    }

    /// Returns the spans that end with a record.
    pub fn add(&mut self, record: &JournalRecord) -> Vec<Span> {
        match &record.event {
            Event::Run(RunEvent::StatusChanged { status }) if status.is_final() => {
                vec![self.run_span(record.at, status.as_str())]
            }
            Event::Iteration(event) => self.add_iteration(event, record),
            Event::Model(event) => self.add_model(event, record),
            Event::Agent(event) => self.add_agent(event, record),
            Event::Verification(event) => self.add_verification(event, record),
            Event::Run(_)
            | Event::Command(_)
            | Event::Sandbox(_)
            | Event::Egress(_)
            | Event::Delivery(_)
            | Event::Doctor(_) => Vec::new(),
        }
    }

    fn run_span(&self, end: Timestamp, status: &'static str) -> Span {
        let mut attributes = self.attributes.clone();
        attributes.push(("ralph.status", SpanValue::Text(status.to_owned())));
        Span {
            trace: self.trace.clone(),
            id: self.root.clone(),
            parent: None,
            name: "run",
            start: self.started_at,
            end,
            attributes,
            status: if status == "failed" {
                SpanStatus::Error
            } else {
                SpanStatus::Unset
            },
        }
    }

    fn add_iteration(&mut self, event: &IterationEvent, record: &JournalRecord) -> Vec<Span> {
        match event {
            IterationEvent::IterationStarted { .. } => {
                // An interrupted iteration left its spans open.
                self.open.clear();
                self.start(OpenKey::Iteration, record);
                Vec::new()
            }
            IterationEvent::ActionStarted { index, .. } => {
                self.start(OpenKey::Action(*index), record);
                Vec::new()
            }
            IterationEvent::ActionFinished {
                iteration,
                index,
                action,
                result,
                ..
            } => {
                let attributes = vec![
                    number("ralph.iteration", u64::from(*iteration)),
                    ("ralph.action", SpanValue::Text(action.clone())),
                ];
                let status = SpanStatus::for_success(result.is_success());
                self.end(
                    OpenKey::Action(*index),
                    "action",
                    record,
                    (attributes, status),
                )
            }
            IterationEvent::ClaimChecked { checks, .. } => self.checks(checks, record),
            IterationEvent::TestsRun { check, .. } => {
                self.checks(std::slice::from_ref(check), record)
            }
            IterationEvent::IterationFinished {
                iteration,
                outcome,
                metrics,
                ..
            } => {
                let mut attributes = vec![
                    number("ralph.iteration", u64::from(*iteration)),
                    (
                        "ralph.outcome",
                        SpanValue::Text(outcome_name(outcome).to_owned()),
                    ),
                    (
                        "ralph.cost_usd",
                        SpanValue::Decimal(metrics.cost_usd.dollars()),
                    ),
                    number("ralph.boxes_ticked", metrics.boxes_ticked as u64),
                ];
                attributes.extend(usage_attributes(&metrics.usage));
                let ended = (attributes, SpanStatus::Unset);
                self.end(OpenKey::Iteration, "iteration", record, ended)
            }
            IterationEvent::BoxesTicked { .. } | IterationEvent::Gutter { .. } => Vec::new(),
        }
    }

    fn add_model(&mut self, event: &ModelEvent, record: &JournalRecord) -> Vec<Span> {
        let (usage, cost, status) = match event {
            ModelEvent::ModelAsked { .. } => {
                self.start(OpenKey::Model, record);
                return Vec::new();
            }
            ModelEvent::ModelReplied {
                usage, cost_usd, ..
            } => (Some(usage), Some(cost_usd), SpanStatus::Unset),
            ModelEvent::ModelAbandoned {
                usage, cost_usd, ..
            } => (Some(usage), Some(cost_usd), SpanStatus::Error),
            ModelEvent::ModelFailed { .. } => (None, None, SpanStatus::Error),
            ModelEvent::ReplyRejected { .. } | ModelEvent::ReplyAccepted { .. } => {
                return Vec::new();
            }
        };
        let mut attributes: Vec<_> = usage.into_iter().flat_map(usage_attributes).collect();
        attributes.extend(cost.map(|cost| ("ralph.cost_usd", SpanValue::Decimal(cost.dollars()))));
        self.end(OpenKey::Model, "model call", record, (attributes, status))
    }

    fn add_agent(&mut self, event: &AgentSessionEvent, record: &JournalRecord) -> Vec<Span> {
        match event {
            AgentSessionEvent::AgentStarted { .. } => {
                self.start(OpenKey::Agent, record);
                Vec::new()
            }
            AgentSessionEvent::AgentFinished { attempt, end, .. } => {
                let attributes = vec![number("ralph.attempt", u64::from(*attempt))];
                let is_finished = *end == ralph_core::ports::AgentEnd::Finished;
                let ended = (attributes, SpanStatus::for_success(is_finished));
                self.end(OpenKey::Agent, "agent session", record, ended)
            }
            AgentSessionEvent::AgentCharged {
                model,
                usage,
                cost_usd,
                ..
            } => {
                // The gate reports a call when it ends, so only its cost and tokens are known.
                let mut attributes = vec![
                    ("gen_ai.response.model", SpanValue::Text(model.clone())),
                    ("ralph.cost_usd", SpanValue::Decimal(cost_usd.dollars())),
                ];
                attributes.extend(usage_attributes(usage));
                vec![self.span_between(
                    "model call",
                    (record.at, record.at),
                    (record.seq, 0),
                    (attributes, SpanStatus::Unset),
                )]
            }
            AgentSessionEvent::AgentDid { .. }
            | AgentSessionEvent::AgentMeasured { .. }
            | AgentSessionEvent::AgentSwitched { .. } => Vec::new(),
        }
    }

    fn add_verification(&mut self, event: &VerificationEvent, record: &JournalRecord) -> Vec<Span> {
        match event {
            VerificationEvent::BaselineStarted { .. } => {
                self.start(OpenKey::Baseline, record);
                Vec::new()
            }
            VerificationEvent::VerifyStarted { .. } => {
                self.start(OpenKey::Verification, record);
                Vec::new()
            }
            VerificationEvent::BaselineFinished { checks, cached, .. } => {
                let mut spans = if *cached {
                    Vec::new()
                } else {
                    self.checks(checks, record)
                };
                let attributes = vec![("ralph.cached", SpanValue::Flag(*cached))];
                let ended = (attributes, SpanStatus::Unset);
                spans.extend(self.end(OpenKey::Baseline, "baseline", record, ended));
                spans
            }
            VerificationEvent::VerifyFinished { checks, green, .. } => {
                let mut spans = self.checks(checks, record);
                let attributes = vec![("ralph.green", SpanValue::Flag(*green))];
                let ended = (attributes, SpanStatus::for_success(*green));
                spans.extend(self.end(OpenKey::Verification, "verification", record, ended));
                spans
            }
            VerificationEvent::CheckStarted { .. }
            | VerificationEvent::TestChangesApproved { .. }
            | VerificationEvent::SuccessRefused { .. } => Vec::new(),
        }
    }

    /// Returns the spans of finished checks, which are recorded with their durations.
    fn checks(&self, checks: &[CheckResult], record: &JournalRecord) -> Vec<Span> {
        let mut end = record.at;
        let mut spans = Vec::new();
        for (index, check) in checks.iter().enumerate().rev().take(MAX_OPEN) {
            let duration = std::time::Duration::from_millis(check.duration_ms);
            let start = end.checked_sub(duration).unwrap_or(end);
            let attributes = vec![("ralph.check", SpanValue::Text(check.name.clone()))];
            let status = SpanStatus::for_success(check.is_green());
            let key = (record.seq, index + 1);
            spans.push(self.span_between("check", (start, end), key, (attributes, status)));
            end = start;
        }
        spans
    }

    fn start(&mut self, key: OpenKey, record: &JournalRecord) {
        if self.open.len() < MAX_OPEN {
            let span = OpenSpan {
                id: self.span_id((record.seq, 0)),
                start: record.at,
            };
            self.open.insert(key, span);
        }
    }

    /// Ends an open span. One that an earlier process started has no start here, and is left out.
    fn end(
        &mut self,
        key: OpenKey,
        name: &'static str,
        record: &JournalRecord,
        (attributes, status): (Vec<(&'static str, SpanValue)>, SpanStatus),
    ) -> Vec<Span> {
        let is_iteration = key == OpenKey::Iteration;
        let Some(open) = self.open.remove(&key) else {
            return Vec::new();
        };
        let mut span = self.span_between(
            name,
            (open.start, record.at),
            (record.seq, 0),
            (attributes, status),
        );
        span.id = open.id;
        if is_iteration {
            span.parent = Some(self.root.clone());
        }
        vec![span]
    }

    fn span_between(
        &self,
        name: &'static str,
        (start, end): (Timestamp, Timestamp),
        key: (u64, usize),
        (attributes, status): (Vec<(&'static str, SpanValue)>, SpanStatus),
    ) -> Span {
        let iteration = self.open.get(&OpenKey::Iteration);
        let parent = iteration.map_or_else(|| self.root.clone(), |open| open.id.clone());
        let run = ("ralph.run", SpanValue::Text(self.run.to_string()));
        Span {
            trace: self.trace.clone(),
            id: self.span_id(key),
            parent: Some(parent),
            name,
            start,
            end,
            attributes: std::iter::once(run).chain(attributes).collect(),
            status,
        }
    }

    fn span_id(&self, (seq, part): (u64, usize)) -> String {
        let digest = Digest::compute(format!("{} {seq} {part}", self.run).as_bytes());
        digest.as_str()[..16].to_owned()
    }
}

fn number(name: &'static str, value: u64) -> (&'static str, SpanValue) {
    (name, SpanValue::Number(value))
}

fn usage_attributes(usage: &TokenUsage) -> [(&'static str, SpanValue); 2] {
    [
        number("gen_ai.usage.input_tokens", usage.input_tokens),
        number("gen_ai.usage.output_tokens", usage.output_tokens),
    ]
}

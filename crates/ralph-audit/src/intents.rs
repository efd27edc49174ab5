//! INT: every intent has an outcome, and no effect happens without its intent or twice.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use super::journal::AuditRecord;
use super::report::{AuditOutcome, Findings};

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let mut walk = IntentCheck::default();
    for record in &evidence.journal.records {
        walk.apply(record);
    }
    AuditOutcome::Checked(walk.findings)
}

/// Iteration and index of an action, or iteration and attempt of a call.
type IntentKey = (u64, u64);

#[derive(Default)]
struct IntentCheck<'a> {
    findings: Findings,
    /// The action without an outcome.
    action: Option<(IntentKey, &'a AuditRecord)>,
    /// The call without an outcome.
    call: Option<(IntentKey, &'a AuditRecord)>,
    /// The call that was charged without a response.
    abandoned: Option<IntentKey>,
    /// Whether another process has opened the run since the action was started.
    reopened: bool,
    /// The final outcomes.
    finished_actions: BTreeMap<IntentKey, &'a AuditRecord>,
    /// The agent that was started and has not finished.
    agent: Option<(IntentKey, &'a AuditRecord)>,
    /// The question to the doctor without an outcome.
    doctor: Option<(IntentKey, &'a AuditRecord)>,
    /// The accepted user commands, and whether they are done.
    commands: BTreeMap<&'a str, bool>,
}

impl<'a> IntentCheck<'a> {
    fn apply(&mut self, record: &'a AuditRecord) {
        let number = |key| record.event_u64(key).unwrap_or_default();
        let iteration = number("iteration");
        match record.kind() {
            "run_opened" => self.reopened = true,
            "action_started" => self.start_action((iteration, number("index")), record),
            "action_finished" => self.finish_action((iteration, number("index")), record),
            "model_asked" => self.start_call((iteration, number("attempt")), record),
            "model_replied" | "model_failed" => {
                self.finish_call((iteration, number("attempt")), record);
            }
            "model_abandoned" => self.abandoned = Some((iteration, number("attempt"))),
            "agent_started" => self.start_agent((iteration, number("attempt")), record),
            "agent_finished" => self.finish_agent((iteration, number("attempt")), record),
            "reply_accepted" => self.close_call(record),
            "iteration_started" | "iteration_finished" => {
                // An iteration that continues after a crash retains its intents.
                let goes_on = self.reopened && record.kind() == "iteration_started";
                if record.text("outcome") == "sandbox_lost" {
                    // Everything in the sandbox ended with it.
                    (self.agent, self.call, self.action) = (None, None, None);
                } else if !goes_on {
                    self.close_agent(record);
                    self.close_call(record);
                    self.close_action(record);
                }
            }
            "doctor_asked" => self.start_doctor_call((number("number"), number("attempt")), record),
            "doctor_replied" | "doctor_failed" | "doctor_abandoned" => {
                self.finish_doctor_call((number("number"), number("attempt")), record);
            }
            "command_received" if record.event()["refused"].is_null() => {
                self.commands.insert(record.text("id"), false);
            }
            "command_done" => self.finish_command(record),
            _ => {}
        }
    }

    fn start_agent(&mut self, place: IntentKey, record: &'a AuditRecord) {
        if !self.reopened {
            self.close_agent(record);
        }
        self.agent = Some((place, record));
        self.reopened = false;
    }

    fn finish_agent(&mut self, place: IntentKey, record: &AuditRecord) {
        if self.agent.take_if(|(begun, _)| *begun == place).is_none() {
            self.findings
                .fail(format!("{}: the agent was not started", record.describe()));
        }
    }

    fn close_agent(&mut self, by: &AuditRecord) {
        if let Some((_, started)) = self.agent.take() {
            self.findings.fail(format!(
                "{}: the agent was started and has no outcome before {}",
                started.describe(),
                by.describe()
            ));
        }
    }

    fn start_doctor_call(&mut self, place: IntentKey, record: &'a AuditRecord) {
        if let Some((_, asked)) = self.doctor.replace((place, record)) {
            self.findings.fail(format!(
                "{}: the doctor was asked, and again in {} without an outcome",
                asked.describe(),
                record.describe()
            ));
        }
    }

    fn finish_doctor_call(&mut self, place: IntentKey, record: &AuditRecord) {
        let asked = self.doctor.take_if(|(pending, _)| *pending == place);
        // An unreadable reply is recorded as a failure after its arrival.
        if asked.is_none() && record.kind() != "doctor_failed" {
            self.findings
                .fail(format!("{}: the doctor was not asked", record.describe()));
        }
    }

    fn finish_command(&mut self, record: &'a AuditRecord) {
        let id = record.text("id");
        match self.commands.insert(id, true) {
            Some(false) => {}
            Some(true) => self.findings.fail(format!(
                "{}: command `{id}` was done before",
                record.describe()
            )),
            None => self.findings.fail(format!(
                "{}: command `{id}` was not accepted",
                record.describe()
            )),
        }
    }

    fn start_action(&mut self, place: IntentKey, record: &'a AuditRecord) {
        self.close_call(record);
        let again = self.action.is_some_and(|(pending, _)| pending == place) && self.reopened;
        // A command is never silently repeated; the effect of a file or a commit can be inspected.
        if !again || record.text("action") == "run" {
            self.close_action(record);
        }
        self.action = Some((place, record));
        self.reopened = false;
    }

    fn finish_action(&mut self, place: IntentKey, record: &'a AuditRecord) {
        let (iteration, index) = place;
        let begun = self.action.is_some_and(|(pending, _)| pending == place);
        if begun {
            self.action = None;
        }
        let result = record.text("result");
        if !begun && matches!(result, "done" | "ran" | "interrupted") {
            self.findings.fail(format!(
                "{}: action {index} of iteration {iteration} ended without a beginning",
                record.describe()
            ));
        }
        if result == "interrupted" {
            return;
        }
        if let Some(first) = self.finished_actions.insert(place, record) {
            self.findings.fail(format!(
                "{}: action {index} of iteration {iteration} ended a second time, first in {}",
                record.describe(),
                first.describe()
            ));
        }
    }

    fn start_call(&mut self, place: IntentKey, record: &'a AuditRecord) {
        // A call without a response is abandoned by asking again in the same iteration.
        if self
            .call
            .is_some_and(|((iteration, _), _)| iteration != place.0)
        {
            self.close_call(record);
        }
        self.call = Some((place, record));
    }

    fn finish_call(&mut self, place: IntentKey, record: &AuditRecord) {
        let asked = self.call.is_some_and(|(pending, _)| pending == place);
        if !asked {
            let (iteration, attempt) = place;
            self.findings.fail(format!(
                "{}: attempt {attempt} of iteration {iteration} was not asked",
                record.describe()
            ));
        }
        self.call = None;
    }

    fn close_call(&mut self, by: &AuditRecord) {
        if let Some((place, asked)) = self.call.take()
            && self.abandoned != Some(place)
        {
            let (iteration, attempt) = place;
            self.findings.fail(format!(
                "{}: attempt {attempt} of iteration {iteration} has no outcome before {}",
                asked.describe(),
                by.describe()
            ));
        }
    }

    fn close_action(&mut self, by: &AuditRecord) {
        if let Some(((iteration, index), begun)) = self.action.take() {
            self.findings.fail(format!(
                "{}: action {index} of iteration {iteration} has no outcome before {}",
                begun.describe(),
                by.describe()
            ));
        }
    }
}

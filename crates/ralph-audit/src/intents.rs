//! INT: every intent has an outcome, and no effect happens without its intent or twice.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use super::host_checks;
use super::journal::AuditRecord;
use super::report::{AuditOutcome, Findings};

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let mut walk = IntentCheck::default();
    for record in &evidence.journal.records {
        walk.apply(record);
    }
    host_checks::check_intents(evidence, &mut walk.findings);
    AuditOutcome::Checked(walk.findings)
}

/// Iteration and index of an action, iteration and attempt of a call or an agent, or number and
/// attempt of a question to the doctor.
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
    /// Whether another process has opened the run since the last action or agent was started.
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
                let continues = self.reopened && record.kind() == "iteration_started";
                if record.text("outcome") == "sandbox_lost" {
                    // Everything in the sandbox ended with it.
                    (self.agent, self.call, self.action) = (None, None, None);
                } else if !continues {
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

    fn start_agent(&mut self, key: IntentKey, record: &'a AuditRecord) {
        if !self.reopened {
            self.close_agent(record);
        }
        self.agent = Some((key, record));
        self.reopened = false;
    }

    fn finish_agent(&mut self, key: IntentKey, record: &AuditRecord) {
        if self.agent.take_if(|(started, _)| *started == key).is_none() {
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

    fn start_doctor_call(&mut self, key: IntentKey, record: &'a AuditRecord) {
        if let Some((_, asked)) = self.doctor.replace((key, record)) {
            self.findings.fail(format!(
                "{}: the doctor was asked, and asked again in {} without an outcome",
                asked.describe(),
                record.describe()
            ));
        }
    }

    fn finish_doctor_call(&mut self, key: IntentKey, record: &AuditRecord) {
        let asked = self.doctor.take_if(|(pending, _)| *pending == key);
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
                "{}: command `{id}` was already done",
                record.describe()
            )),
            None => self.findings.fail(format!(
                "{}: command `{id}` was not accepted",
                record.describe()
            )),
        }
    }

    fn start_action(&mut self, key: IntentKey, record: &'a AuditRecord) {
        self.close_call(record);
        let again = self.action.is_some_and(|(pending, _)| pending == key) && self.reopened;
        // A command is never silently repeated; the effect of a file or a commit can be inspected.
        if !again || record.text("action") == "run" {
            self.close_action(record);
        }
        self.action = Some((key, record));
        self.reopened = false;
    }

    fn finish_action(&mut self, key: IntentKey, record: &'a AuditRecord) {
        let (iteration, index) = key;
        let started = self.action.is_some_and(|(pending, _)| pending == key);
        if started {
            self.action = None;
        }
        let result = record.text("result");
        if !started && matches!(result, "done" | "ran" | "interrupted") {
            self.findings.fail(format!(
                "{}: action {index} of iteration {iteration} finished without a start",
                record.describe()
            ));
        }
        if result == "interrupted" {
            return;
        }
        if let Some(first) = self.finished_actions.insert(key, record) {
            self.findings.fail(format!(
                "{}: action {index} of iteration {iteration} finished a second time, first in {}",
                record.describe(),
                first.describe()
            ));
        }
    }

    fn start_call(&mut self, key: IntentKey, record: &'a AuditRecord) {
        // A second call in the same iteration abandons one without a response.
        if self
            .call
            .is_some_and(|((iteration, _), _)| iteration != key.0)
        {
            self.close_call(record);
        }
        self.call = Some((key, record));
    }

    fn finish_call(&mut self, key: IntentKey, record: &AuditRecord) {
        let asked = self.call.is_some_and(|(pending, _)| pending == key);
        if !asked {
            let (iteration, attempt) = key;
            self.findings.fail(format!(
                "{}: attempt {attempt} of iteration {iteration} has an outcome but no call",
                record.describe()
            ));
        }
        self.call = None;
    }

    fn close_call(&mut self, by: &AuditRecord) {
        if let Some((key, asked)) = self.call.take()
            && self.abandoned != Some(key)
        {
            let (iteration, attempt) = key;
            self.findings.fail(format!(
                "{}: attempt {attempt} of iteration {iteration} has no outcome before {}",
                asked.describe(),
                by.describe()
            ));
        }
    }

    fn close_action(&mut self, by: &AuditRecord) {
        if let Some(((iteration, index), started)) = self.action.take() {
            self.findings.fail(format!(
                "{}: action {index} of iteration {iteration} has no outcome before {}",
                started.describe(),
                by.describe()
            ));
        }
    }
}

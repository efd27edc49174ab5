//! I14: the sequence of statuses follows the state machine.

use super::evidence::Evidence;
use super::report::{AuditOutcome, Findings};

/// Each status and its permitted successors.
const TRANSITIONS: [(&str, &[&str]); 13] = [
    ("created", &["preparing", "paused", "stopped", "failed"]),
    (
        "preparing",
        &[
            "preparing",
            "running",
            "paused",
            "stopped",
            "failed",
            "sandbox_lost",
        ],
    ),
    (
        "running",
        &[
            "running",
            "paused",
            "waiting_quota",
            "waiting_provider",
            "waiting_host",
            "verifying",
            "stopped",
            "failed",
            "sandbox_lost",
        ],
    ),
    (
        "paused",
        &[
            // A pause takes effect at the end of a verification, and the run continues from there.
            "verifying",
            "waiting_ci",
            "running",
            "preparing",
            "paused",
            "stopped",
            "failed",
            "sandbox_lost",
        ],
    ),
    (
        "waiting_quota",
        &["running", "preparing", "paused", "stopped", "failed"],
    ),
    (
        "waiting_provider",
        &["running", "preparing", "paused", "stopped", "failed"],
    ),
    (
        "waiting_ci",
        &[
            "waiting_ci",
            "waiting_host",
            "verifying",
            "preparing",
            "paused",
            "stopped",
            "failed",
        ],
    ),
    (
        "waiting_host",
        &[
            "running",
            "verifying",
            "waiting_ci",
            "preparing",
            "paused",
            "stopped",
            "failed",
        ],
    ),
    (
        "verifying",
        &[
            "running",
            "waiting_ci",
            "waiting_host",
            "verifying",
            "succeeded",
            "paused",
            "stopped",
            "failed",
            "sandbox_lost",
        ],
    ),
    ("sandbox_lost", &["preparing", "stopped"]),
    ("succeeded", &[]),
    ("failed", &[]),
    ("stopped", &[]),
];

/// The statuses in which a process may be working when it dies.
const ACTIVE: [&str; 4] = ["created", "preparing", "running", "verifying"];

/// Events that occur only in unfinished runs.
const EVENTS_OF_UNFINISHED_RUNS: [&str; 27] = [
    "iteration_started",
    "model_asked",
    "model_replied",
    "model_failed",
    "model_abandoned",
    "reply_rejected",
    "reply_accepted",
    "agent_started",
    "agent_did",
    "agent_charged",
    "agent_measured",
    "agent_switched",
    "agent_finished",
    "action_started",
    "action_finished",
    "claim_checked",
    "tests_run",
    "check_started",
    "iteration_finished",
    "gutter",
    "doctor_asked",
    "doctor_replied",
    "doctor_abandoned",
    "doctor_failed",
    "doctor_reported",
    "diagnosis_applied",
    "command_done",
];

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let mut findings = Findings::default();
    let mut status = "created";
    let mut reopened = false;
    let mut budget_failure = false;
    let mut continued = false;
    for record in &evidence.journal.records {
        let name = record.describe();
        match record.kind() {
            "run_created" if record.number > 1 => {
                findings.fail(format!("{name}: the run was created before"));
            }
            "run_opened" => reopened = true,
            "limits_changed" if is_final(status) && !budget_failure => {
                findings.fail(format!("{name} comes after the run has {status}"));
            }
            // A run that failed on a budget continues with a higher one.
            "limits_changed" => continued = budget_failure,
            "status_changed" => {
                let next = record.text("status");
                let after_crash = reopened && ACTIVE.contains(&status) && next == "preparing";
                let after_raise = reopened && continued && next == "preparing";
                if !after_crash && !after_raise && !may_follow(status, next) {
                    findings.fail(format!("{name}: `{next}` must not follow `{status}`"));
                }
                status = next;
                reopened = false;
                continued = false;
                let reason = &record.event()["reason"];
                budget_failure = next == "failed" && reason["kind"] == "budget";
            }
            kind if EVENTS_OF_UNFINISHED_RUNS.contains(&kind) && is_final(status) && !continued => {
                findings.fail(format!("{name} comes after the run has {status}"));
            }
            _ => {}
        }
    }
    AuditOutcome::Checked(findings)
}

fn successors(status: &str) -> Option<&'static [&'static str]> {
    let row = TRANSITIONS.iter().find(|(name, _)| *name == status);
    row.map(|(_, follows)| *follows)
}

fn may_follow(status: &str, next: &str) -> bool {
    successors(next).is_some() && successors(status).is_none_or(|follows| follows.contains(&next))
}

fn is_final(status: &str) -> bool {
    successors(status).is_some_and(<[&str]>::is_empty)
}

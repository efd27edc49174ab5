//! What a run needs from the user, with the commands that answer it.

use ralph_core::budget::Budget;
use ralph_core::run::{FailReason, PauseReason, RunStatus};
use ralph_core::state::RunState;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use super::summary::interrupted_hint;

/// The number of blocked hosts that are named.
const MAX_HOSTS: usize = 20;

/// Something that a run needs from the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AttentionItem {
    pub kind: AttentionKind,
    /// The question or problem.
    pub text: String,
    /// What the user can do, the most likely first.
    pub answers: Vec<AttentionAnswer>,
}

/// The kinds of attention, most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// The model asks a question.
    Question,
    /// Existing tests were changed, which needs the user's approval.
    TestChanges,
    /// The run is circling.
    Circling,
    /// A budget is used up.
    Budget,
    /// The run failed for another reason.
    Failure,
    /// Something outside of the run is broken.
    Broken,
    /// Its sandbox is gone.
    SandboxLost,
    /// Its process is gone.
    Interrupted,
    /// Commands could not reach hosts.
    BlockedHosts,
    /// The doctor proposes changes.
    DoctorReport,
}

/// A command that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AttentionAnswer {
    /// The name of the command, as in the list of available commands.
    pub command: &'static str,
    /// The command line; `…` stands for the user's text.
    pub command_line: String,
}

/// Returns what a run needs from the user, the most urgent first.
pub fn attention(dir: &RunDir, state: &RunState) -> Vec<AttentionItem> {
    if state.discarded {
        return Vec::new();
    }
    let run = &state.plan.run;
    let mut items = Vec::new();
    if dir.is_interrupted(&state.status) {
        items.push(AttentionItem {
            kind: AttentionKind::Interrupted,
            text: interrupted_hint(run),
            answers: vec![answer(state, "resume", ""), answer(state, "stop", "")],
        });
    } else {
        items.extend(status_item(state));
    }
    items.extend(blocked_hosts(state));
    if let Some((number, report)) = &state.doctor.report
        && !state.status.is_final()
    {
        items.push(AttentionItem {
            kind: AttentionKind::DoctorReport,
            text: format!("report {number}: {}", report.summary),
            answers: vec![AttentionAnswer {
                command: "apply",
                command_line: format!("ralph diagnose {run} --apply"),
            }],
        });
    }
    items
}

fn status_item(state: &RunState) -> Option<AttentionItem> {
    let item = |kind, text: String, answers| {
        Some(AttentionItem {
            kind,
            text,
            answers,
        })
    };
    let resume = || answer(state, "resume", "");
    match &state.status {
        RunStatus::Paused(reason) => {
            let answers = |first| vec![first, answer(state, "stop", "")];
            let text = reason.to_string();
            match reason {
                PauseReason::Model { question } => item(
                    AttentionKind::Question,
                    question.clone(),
                    answers(answer(state, "answer", " …")),
                ),
                PauseReason::Gutter { .. } => item(
                    AttentionKind::Circling,
                    text,
                    vec![
                        answer(state, "answer", " …"),
                        answer(state, "diagnose", ""),
                        answer(state, "stop", ""),
                    ],
                ),
                PauseReason::TestChanges { .. } => {
                    item(AttentionKind::TestChanges, text, answers(resume()))
                }
                PauseReason::CrashLoop { .. } | PauseReason::Broken { .. } => {
                    item(AttentionKind::Broken, text, answers(resume()))
                }
                // The user or the machine paused it, and knows.
                PauseReason::Person | PauseReason::Interrupted => None,
            }
        }
        RunStatus::Failed(FailReason::Budget { budget }) => item(
            AttentionKind::Budget,
            format!("the budget `{}` is used up", budget.key()),
            vec![answer(state, "continue", &format!(" {} …", flag(*budget)))],
        ),
        RunStatus::Failed(reason) => item(AttentionKind::Failure, reason.to_string(), Vec::new()),
        RunStatus::SandboxLost => item(
            AttentionKind::SandboxLost,
            "the sandbox is gone; committed work is kept".to_owned(),
            vec![resume(), answer(state, "stop", "")],
        ),
        RunStatus::Created
        | RunStatus::Preparing
        | RunStatus::Running
        | RunStatus::WaitingQuota(_)
        | RunStatus::WaitingProvider(_)
        | RunStatus::WaitingCi(_)
        | RunStatus::WaitingHost(_)
        | RunStatus::Verifying
        | RunStatus::Succeeded
        | RunStatus::Stopped => None,
    }
}

fn blocked_hosts(state: &RunState) -> Option<AttentionItem> {
    let hosts: Vec<&String> = state.blocked_hosts.iter().take(MAX_HOSTS).collect();
    if hosts.is_empty() || state.status == RunStatus::Succeeded {
        return None;
    }
    let named: Vec<&str> = hosts.iter().map(|host| host.as_str()).collect();
    let option = if state.status.is_final() {
        " --project"
    } else {
        ""
    };
    let answers = hosts
        .iter()
        .map(|host| answer(state, "allow", &format!(" {host}{option}")));
    Some(AttentionItem {
        kind: AttentionKind::BlockedHosts,
        text: format!("commands could not reach {}", named.join(", ")),
        answers: answers.collect(),
    })
}

fn answer(state: &RunState, command: &'static str, arguments: &str) -> AttentionAnswer {
    let run = &state.plan.run;
    AttentionAnswer {
        command,
        command_line: format!("ralph {command} {run}{arguments}"),
    }
}

/// Returns the flag of `ralph continue` that raises a budget.
pub(super) fn flag(budget: Budget) -> &'static str {
    match budget {
        Budget::Iterations => "--max-iterations",
        Budget::WallTime => "--max-time",
        Budget::Cost => "--max-cost",
        Budget::Tokens => "--max-tokens",
    }
}

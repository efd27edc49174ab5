//! The evidence for the result of a run: its checks, and the changed files that affect them.

use ralph_core::event::{Event, VerificationEvent};
use ralph_core::id::{CommitId, Digest};
use ralph_core::state::RunState;
use ralph_core::surface::{self, SurfaceFinding};
use ralph_core::verdict::{CheckResult, TestCount, VerifyFinding};
use ralph_engine::contract;
use ralph_engine::journal;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::AppError;

/// The number of changed files per list.
const MAX_FILES: usize = 200;

/// What proves the result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Evidence {
    /// The checks at the base commit, before any work.
    pub baseline: Option<BaselineEvidence>,
    /// The verdicts of the clean rooms, oldest first.
    pub verdicts: Vec<Verdict>,
    /// Why the model's last request to end with success was rejected.
    pub refusals: Vec<String>,
    /// The changed files of the last commit on the host that affect the verification or run on a
    /// developer's machine.
    pub changed_files: ChangedFiles,
}

/// The checks at the base commit.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct BaselineEvidence {
    pub commit: CommitId,
    pub checks: Vec<CheckEvidence>,
    /// Whether the results are those of an earlier run.
    pub cached: bool,
}

/// The verdict of the clean rooms about a commit.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Verdict {
    pub at: jiff::Timestamp,
    pub commit: CommitId,
    /// The contract that was checked.
    pub contract: Digest,
    pub green: bool,
    pub checks: Vec<CheckEvidence>,
    /// Why it is not green.
    pub reasons: Vec<String>,
    /// Facts that qualify it.
    pub findings: Vec<VerifyFinding>,
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CheckEvidence {
    /// A box's id, `test_command` or `verify_commands[1]`.
    pub name: String,
    pub command: String,
    pub green: bool,
    /// By the shell's conventions: 124 for a timeout.
    pub exit_code: i32,
    pub duration_ms: u64,
    pub tests: Option<TestCount>,
}

/// Changed files by the reason to look at them, with at most 200 files per reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangedFiles {
    pub verification: Vec<SurfaceFinding>,
    pub executes_for_developers: Vec<SurfaceFinding>,
    pub workflows: Vec<SurfaceFinding>,
    pub deleted_tests: Vec<String>,
}

/// Collects the evidence of a run.
pub async fn evidence(dir: &RunDir, state: &RunState, app: &App) -> Result<Evidence, AppError> {
    let mut baseline = None;
    let mut verdicts = Vec::new();
    for record in journal::read(&dir.journal())? {
        let Event::Verification(event) = record.event else {
            continue;
        };
        match event {
            VerificationEvent::BaselineFinished {
                commit,
                checks,
                cached,
                ..
            } => {
                let checks = checks.into_iter().map(CheckEvidence::from).collect();
                baseline = Some(BaselineEvidence {
                    commit,
                    checks,
                    cached,
                });
            }
            VerificationEvent::VerifyFinished {
                head,
                contract,
                green,
                checks,
                reasons,
                findings,
            } => verdicts.push(Verdict {
                at: record.at,
                commit: head,
                contract,
                green,
                checks: checks.into_iter().map(CheckEvidence::from).collect(),
                reasons,
                findings,
            }),
            VerificationEvent::BaselineStarted { .. }
            | VerificationEvent::CheckStarted { .. }
            | VerificationEvent::VerifyStarted { .. }
            | VerificationEvent::TestChangesApproved { .. }
            | VerificationEvent::SuccessRefused { .. } => {}
        }
    }
    Ok(Evidence {
        baseline,
        verdicts,
        refusals: state.refusals.clone(),
        changed_files: changed_files(dir, state, app).await?,
    })
}

async fn changed_files(
    dir: &RunDir,
    state: &RunState,
    app: &App,
) -> Result<ChangedFiles, AppError> {
    if state.head == state.plan.base {
        return Ok(ChangedFiles::default());
    }
    let unreadable = |why: String, fix: String| {
        let what = format!("cannot read the changes of run `{}`", state.plan.run);
        AppError::runtime(what, why, fix)
    };
    let task = contract::load_contract(dir, &state.contract)
        .map_err(|error| unreadable(error.to_string(), error.hint()))?;
    let repo = app.providers()?.git()?.repo(dir.repo());
    let changed = repo.changed_paths(&state.plan.base, &state.head).await;
    let changed =
        changed.map_err(|error| unreadable(error.to_string(), error.hint().to_owned()))?;
    let mut commands: Vec<String> = task
        .all_verify_commands()
        .iter()
        .map(ToString::to_string)
        .collect();
    commands.extend(task.contract.test_command.clone());
    let mut found = surface::inspect_changes(&changed, &commands);
    for findings in [
        &mut found.verification,
        &mut found.executes_for_developers,
        &mut found.workflows,
    ] {
        findings.truncate(MAX_FILES);
    }
    found.deleted_tests.truncate(MAX_FILES);
    Ok(ChangedFiles {
        verification: found.verification,
        executes_for_developers: found.executes_for_developers,
        workflows: found.workflows,
        deleted_tests: found.deleted_tests,
    })
}

impl From<CheckResult> for CheckEvidence {
    fn from(check: CheckResult) -> Self {
        Self {
            green: check.is_green(),
            name: check.name,
            command: check.command,
            exit_code: check.ended.exit_code(),
            duration_ms: check.duration_ms,
            tests: check.tests,
        }
    }
}

//! Clean rooms: every check runs in a fresh sandbox with an untouched checkout of one commit.
//!
//! Nothing that a check leaves behind (files, commits, git configuration, processes, `HOME`,
//! `/tmp`) reaches another check, because the sandbox is removed after it. `room` creates, uses and
//! removes one sandbox; `fingerprint` compares the repository before and after a check.

mod fingerprint;
mod room;

use ralph_core::checks::TestListing;
use ralph_core::event::VerificationEvent;
use ralph_core::id::CommitId;
use ralph_core::verdict::{CheckResult, VerifyFinding};

use room::BranchBundle;
pub(crate) use room::RoomTree;

use crate::controls::Controls;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::services::Services;
use crate::workbench::Workbench;
use room::{create_branch_bundle, run_in_room};

/// A check of the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedCommand {
    /// A box's id, `test_command`, or `verify_commands[1]`.
    pub(crate) name: String,
    pub(crate) command: String,
}

/// The result of a check in its clean room.
#[derive(Debug, Clone)]
pub(crate) struct RoomCheck {
    pub(crate) result: CheckResult,
    /// Why the result does not count for the commit: the check moved to another one.
    pub(crate) objection: Option<String>,
    /// Facts about the run of the check that qualify a green result.
    pub(crate) findings: Vec<VerifyFinding>,
    /// Whether a part of its output was left out.
    pub(crate) is_truncated: bool,
}

/// Runs each command on an untouched checkout of a commit, in a sandbox of its own. A command
/// that several checks share runs once. The results are in the order of the commands.
pub(crate) async fn check_commit(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    services: &Services,
    commit: &CommitId,
    commands: &[NamedCommand],
) -> Result<Vec<RoomCheck>, RunError> {
    check_tree(
        recorder,
        bench,
        controls,
        services,
        &RoomTree::for_commit(commit),
        commands,
    )
    .await
}

/// Runs each command on an untouched copy of these files, like [`check_commit`].
pub(crate) async fn check_tree(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    services: &Services,
    tree: &RoomTree,
    commands: &[NamedCommand],
) -> Result<Vec<RoomCheck>, RunError> {
    let bundle = create_branch_bundle(recorder, bench).await?;
    let mut checks: Vec<RoomCheck> = Vec::new();
    for NamedCommand { name, command } in commands {
        let known = checks.iter().find(|known| known.result.command == *command);
        let check = if let Some(known) = known {
            let mut check = known.clone();
            check.result.name.clone_from(name);
            check
        } else {
            check_in_room(recorder, controls, services, &bundle, tree, name, command).await?
        };
        checks.push(check);
    }
    Ok(checks)
}

/// Runs each command for comparison only: a red one is not an error in the model's work.
pub(crate) async fn check_for_comparison(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    services: &Services,
    tree: &RoomTree,
    commands: &[NamedCommand],
) -> Result<Vec<CheckResult>, RunError> {
    let bundle = create_branch_bundle(recorder, bench).await?;
    let mut checks = Vec::new();
    for NamedCommand { name, command } in commands {
        let ran = run_in_room(recorder, controls, services, &bundle, tree, command).await?;
        checks.push(ran.output.to_check_result(name, command, &ran.outcome));
    }
    Ok(checks)
}

/// Lists the tests of a check, in a clean room of its own; none if the runner cannot list them or
/// the listing does not contain their number.
pub(crate) async fn list_tests(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    services: &Services,
    tree: &RoomTree,
    listing: &TestListing,
) -> Result<Option<u64>, RunError> {
    let Some(command) = &listing.command else {
        return Ok(None);
    };
    let bundle = create_branch_bundle(recorder, bench).await?;
    let ran = run_in_room(recorder, controls, services, &bundle, tree, command).await?;
    let is_complete = ran.outcome.ended.is_success() && !ran.output.is_truncated;
    Ok(listing.count(&ran.output.stdout).filter(|_| is_complete))
}

/// Runs one check in a clean room of its own, and adds its output to `test_output.txt` if an
/// iteration is open.
async fn check_in_room(
    recorder: &mut Recorder,
    controls: &mut Controls,
    services: &Services,
    bundle: &BranchBundle,
    tree: &RoomTree,
    name: &str,
    command: &str,
) -> Result<RoomCheck, RunError> {
    recorder.append(VerificationEvent::CheckStarted {
        command: command.to_owned(),
    })?;
    let ran = run_in_room(recorder, controls, services, bundle, tree, command).await?;
    let ended = ran.outcome.ended;
    if recorder.state().open.is_some() {
        let title = format!("{command}   # in the clean room");
        recorder.append_test_output(&title, &ran.output, ended)?;
    }
    let result = ran.output.to_check_result(name, command, &ran.outcome);
    // A red baseline is normal: nothing has been done yet.
    if !result.is_green() && recorder.state().open.is_some() {
        recorder.log_error(&format!(
            "clean room: `{command}`: {ended}; output ends:\n{}",
            ran.output.tail(20)
        ))?;
    }
    Ok(RoomCheck {
        result,
        objection: ran.changes.objection(command),
        findings: ran.changes.finding(command).into_iter().collect(),
        is_truncated: ran.output.is_truncated,
    })
}

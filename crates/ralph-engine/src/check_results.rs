//! Runs checks in the workspace, and caches their results until files change.

use std::time::Duration;

use ralph_core::event::VerificationEvent;
use ralph_core::path::WorkspacePath;
use ralph_core::ports::{Exec, ExecOutcome};
use ralph_core::verdict::CheckResult;

use crate::capture::{Capture, Captured};
use crate::contract::PinnedTask;
use crate::controls::Controls;
use crate::error::RunError;
use crate::git::{GitError, WorkSnapshot};
use crate::live_output::LiveSource;
use crate::recorder::Recorder;
use crate::steps::IterationScratch;
use crate::workbench::Workbench;
use crate::workspace::TamperFinding;

/// How long a verify or test command may take in runs whose plan has no timeout.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_mins(30);

/// Runs a check in the workspace; the same command is not run twice on the same files.
pub(crate) async fn run_check(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    scratch: &mut IterationScratch,
    name: &str,
    command: &str,
) -> Result<CheckResult, RunError> {
    if let Some(known) = scratch.checks.get(command) {
        return Ok(CheckResult {
            name: name.to_owned(),
            duration_ms: 0,
            ..known.clone()
        });
    }
    let before = bench.git().snapshot().await?;
    recorder.append(VerificationEvent::CheckStarted {
        command: command.to_owned(),
    })?;
    let live = recorder.live_output(LiveSource::Command(command));
    let mut capture = Capture::new(&recorder.redactor).with_live(live);
    let exec = Exec::shell(command, recorder.command_timeout(CHECK_TIMEOUT));
    let outcome = bench.exec(recorder, controls, exec, &mut capture).await?;
    let output = capture.finish();
    recorder.append_test_output(command, &output, outcome.ended)?;
    if let Some(before) = before {
        discard_check_changes(recorder, bench, command, &before).await?;
    }
    let check = output.to_check_result(name, command, &outcome);
    scratch.checks.insert(command.to_owned(), check.clone());
    Ok(check)
}

/// Discards the commits and file changes of a check, so that they never reach the branch. Ignored
/// files stay, because they speed up the next build.
async fn discard_check_changes(
    recorder: &mut Recorder,
    bench: &Workbench,
    command: &str,
    before: &WorkSnapshot,
) -> Result<(), RunError> {
    let changed = match bench.git().restore(before).await {
        Ok(changed) => changed,
        // A damaged repository is repaired when the iteration is settled.
        Err(RunError::Git(GitError::InSandbox { .. })) => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some(path) = changed.first().cloned() else {
        return Ok(());
    };
    let others = match changed.len() {
        1 => String::new(),
        count => format!(" and {} other paths", count - 1),
    };
    let finding = format!("changed by the check `{command}`{others}; restored");
    recorder.record_tampering(vec![TamperFinding { path, finding }])
}

/// Discards the results of earlier checks after a command of the model, which may have changed
/// files. If the command was the test command itself, its result is kept.
pub(crate) fn update_checks_after_command(
    pinned: &PinnedTask,
    scratch: &mut IterationScratch,
    command: &str,
    cwd: Option<&WorkspacePath>,
    outcome: &ExecOutcome,
    output: &Captured,
) {
    let is_test = cwd.is_none() && pinned.contract().test_command.as_deref() == Some(command);
    scratch.checks.clear();
    if is_test {
        let check = output.to_check_result("test_command", command, outcome);
        scratch.checks.insert(command.to_owned(), check);
    }
}

//! Puts changes of the task file in force between two iterations.

use std::collections::BTreeSet;

use ralph_core::event::{IterationEvent, RunEvent};
use ralph_core::spec::{SpecDocument, step_box_id};

use crate::contract::{ContractUpdate, PinnedTask};
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::workbench::Workbench;
use crate::workspace::SPEC_FILE;

/// Reports edits that are not in force, then applies the contract that the user wants, if any.
/// Returns whether the contract changed.
pub(crate) fn apply_contract_change(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    pinned: &mut PinnedTask,
) -> Result<bool, RunError> {
    let run = recorder.state().plan.run.clone();
    for message in pinned.report_edits(&run, &recorder.redactor)? {
        recorder.log_activity(&message)?;
        recorder.append(RunEvent::Notice { message })?;
    }
    let Some(wanted) = recorder.state().wanted_contract.clone() else {
        return Ok(false);
    };
    let limits_before = pinned.contract().limits();
    let mode_before = pinned.contract().mode;
    match pinned.apply(&wanted, &recorder.redactor)? {
        ContractUpdate::Applied {
            digest,
            changes,
            reopened,
        } => {
            recorder.log_activity(&format!(
                "the contract was changed by the user: {}",
                changes.join("; ")
            ))?;
            let mut ticked = recorder.state().ticked.clone();
            ticked.retain(|id| {
                !reopened.contains(id) && pinned.task().checkboxes.iter().any(|b| b.id == *id)
            });
            let in_force = recorder.limits();
            let limits = in_force.after_task_change(&limits_before, &pinned.contract().limits());
            recorder.append(RunEvent::ContractChanged {
                contract: digest,
                changes,
                limits,
                // A task file that names the same mode as before does not undo `ralph mode`.
                mode: (pinned.contract().mode != mode_before).then_some(pinned.contract().mode),
                checkboxes: Some(pinned.task().checkboxes.len()),
            })?;
            set_ticks(recorder, bench, pinned, &ticked)?;
            Ok(true)
        }
        ContractUpdate::Rejected(why) => {
            recorder.log_activity(&format!("a change to the task file was rejected: {why}"))?;
            recorder.append(RunEvent::ContractRejected { why })?;
            Ok(false)
        }
    }
}

/// Puts the mode that the user wants in force, if any.
pub(crate) fn apply_wanted_mode(recorder: &mut Recorder) -> Result<(), RunError> {
    // A mode of an open iteration applies from the next one.
    if recorder.state().open.is_some() {
        return Ok(());
    }
    if let Some(mode) = recorder.state().wanted_mode {
        recorder.log_activity(&format!("the mode is `{}` now", mode.as_str()))?;
        recorder.append(RunEvent::ModeChanged { mode })?;
    }
    Ok(())
}

/// Sets the ticked boxes: in the journal, on the host, in the specification, and for the next projection.
pub(crate) fn set_ticks(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    pinned: &mut PinnedTask,
    ticked: &BTreeSet<String>,
) -> Result<(), RunError> {
    if *ticked != recorder.state().ticked {
        recorder.append(IterationEvent::BoxesTicked {
            ticked: ticked.iter().cloned().collect(),
        })?;
    }
    let text = pinned.write_ticks(ticked)?;
    bench.workspace.set_task(text);
    mark_verified_steps(recorder)
}

/// Marks the steps of an issue whose boxes are ticked as done, and takes all other such marks back. The
/// sandbox receives the file with the next projection.
pub(crate) fn mark_verified_steps(recorder: &Recorder) -> Result<(), RunError> {
    let state = recorder.state();
    let Some(issue) = &state.plan.issue else {
        return Ok(());
    };
    let text = recorder.files.text(SPEC_FILE)?;
    let is_done = |step: &str| state.ticked.contains(&step_box_id(step));
    let marked = SpecDocument::parse(&text).with_done(&issue.steps, is_done);
    if marked != text {
        recorder.files.replace(SPEC_FILE, marked.as_bytes())?;
    }
    Ok(())
}

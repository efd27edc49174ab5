//! The steps of an issue that an agent marks in its copy of the specification.

use ralph_core::ports::SandboxError;
use ralph_core::spec::{SpecDocument, step_box_id};

use crate::error::RunError;
use crate::recorder::Recorder;
use crate::workbench::Workbench;
use crate::workspace::{SPEC_FILE, repo_path};

/// The most bytes of a specification that are read.
const MAX_BYTES: u64 = 1 << 20;

/// The new marks of an agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SpecMarks {
    /// The boxes of the steps that are marked as done.
    pub(super) claimed: Vec<String>,
    /// Why a step cannot be completed.
    pub(super) obstacle: Option<String>,
}

/// Reads the marks of the agent. Without an issue there are none.
pub(super) async fn spec_marks(
    recorder: &Recorder,
    bench: &Workbench,
) -> Result<SpecMarks, RunError> {
    let Some(issue) = &recorder.state().plan.issue else {
        return Ok(SpecMarks::default());
    };
    let path = repo_path(&format!(".ralph/{SPEC_FILE}"))?;
    let copy = match bench.sandbox.read(&path, MAX_BYTES).await {
        Ok(copy) => copy,
        // A later inspection restores the file.
        Err(
            SandboxError::NotFound(_)
            | SandboxError::NotRegular(_)
            | SandboxError::Escapes(_)
            | SandboxError::TooLarge { .. },
        ) => return Ok(SpecMarks::default()),
        Err(error) => return Err(error.into()),
    };
    let known = SpecDocument::parse(&recorder.files.text(SPEC_FILE)?);
    let accepted = known.accept_edits(&String::from_utf8_lossy(&copy));
    let ticked = &recorder.state().ticked;
    let steps = issue
        .steps
        .iter()
        .filter(|step| accepted.claimed.contains(*step));
    let boxes = steps.map(|step| step_box_id(step));
    Ok(SpecMarks {
        claimed: boxes.filter(|id| !ticked.contains(id)).collect(),
        obstacle: (accepted.blocked).map(|(step, why)| format!("step {step}: {why}")),
    })
}

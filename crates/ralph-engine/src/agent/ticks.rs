//! The boxes that an agent claims by ticking them in its copy of the task file.

use ralph_core::action::Claims;
use ralph_core::ports::{SandboxError, WriteMode};
use ralph_core::task::TicksInCopy;

use crate::contract::PinnedTask;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::workbench::Workbench;
use crate::workspace::repo_path;

/// The most bytes of a task file that are read.
const MAX_TASK_BYTES: u64 = 1 << 20;

/// Reads the ticks in the agent's copy of the task file and restores the file. A copy that differs
/// in anything else is left for the inspection, which restores it and records tampering; its ticks
/// still count as claims.
pub(super) async fn agent_claims(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
) -> Result<Claims, RunError> {
    let path = repo_path("ralph_task.md")?;
    let copy = match bench.sandbox.read(&path, MAX_TASK_BYTES).await {
        Ok(bytes) => {
            let copy = String::from_utf8_lossy(&bytes);
            pinned.task().ticks_in(&copy)
        }
        // The inspection also handles a missing file, or an entry that is not a file.
        Err(
            SandboxError::NotFound(_)
            | SandboxError::NotRegular(_)
            | SandboxError::Escapes(_)
            | SandboxError::TooLarge { .. },
        ) => TicksInCopy::default(),
        Err(error) => return Err(error.into()),
    };
    let ticked = &recorder.state().ticked;
    let new: Vec<String> = copy.ticked.difference(ticked).cloned().collect();
    if !new.is_empty() && !copy.differs {
        let text = pinned.task().with_ticks(ticked);
        bench
            .sandbox
            .write(&path, text.as_bytes(), WriteMode::Replace)
            .await?;
    }
    Ok(Claims {
        checkboxes_checked: new,
        ..Claims::default()
    })
}

/// Returns a claim of every open box: an agent that changed nothing claims that all is done.
pub(super) fn claim_all_boxes(recorder: &Recorder, pinned: &PinnedTask) -> Claims {
    let ticked = &recorder.state().ticked;
    let boxes = pinned.task().checkboxes.iter();
    Claims {
        checkboxes_checked: boxes
            .filter(|checkbox| !ticked.contains(&checkbox.id))
            .map(|checkbox| checkbox.id.clone())
            .collect(),
        ..Claims::default()
    }
}

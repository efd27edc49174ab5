//! Writes and patches. The resulting content is computed first, so that the intent can record its
//! digest.

use std::time::Duration;

use ralph_core::action::{Action, rules};
use ralph_core::event::ActionResult;
use ralph_core::id::Digest;
use ralph_core::patch::{self, FileMode};
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Exec, SandboxError, WriteMode};

use super::cleared::copied_placeholder;
use super::perform::ActionEffect;
use crate::capture::Capture;
use crate::contract::PinnedTask;
use crate::controls::Controls;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::steps::IterationScratch;
use crate::workbench::Workbench;

/// The timeout for setting the mode of a file.
const MODE_TIMEOUT: Duration = Duration::from_mins(1);

/// The largest file that an action may read or write.
const MAX_FILE: u64 = 5 << 20;

/// A file action whose result is computed: performing it needs no further decision.
pub(super) enum FileStep {
    Write {
        path: WorkspacePath,
        bytes: Vec<u8>,
        mode: Option<FileMode>,
        detail: String,
    },
    Delete {
        path: WorkspacePath,
    },
    /// An earlier process wrote the file and crashed before it recorded that. The digest is
    /// recorded again for the case of another crash. The mode may not have been set yet.
    AlreadyDone {
        path: WorkspacePath,
        after: Digest,
        mode: Option<FileMode>,
    },
    Resolved(ActionResult),
}

impl FileStep {
    /// Returns the digest that the file will have; none if nothing will change.
    pub(super) fn digest(&self) -> Option<Digest> {
        match self {
            Self::Write { bytes, .. } => Some(Digest::compute(bytes)),
            Self::Delete { .. } => Some(Digest::compute(b"")),
            Self::AlreadyDone { after, .. } => Some(after.clone()),
            Self::Resolved(_) => None,
        }
    }
}

/// Computes the result of a write or a patch without changing anything.
pub(super) async fn plan_file_step(
    recorder: &Recorder,
    bench: &Workbench,
    pinned: &PinnedTask,
    action: &Action,
    path: &WorkspacePath,
    intended: Option<Digest>,
) -> Result<FileStep, RunError> {
    let refused = if let Action::Write { mode, .. } = action {
        rules::refuse_write(path, *mode)
    } else {
        rules::refuse_patch(path)
    };
    let workflow = rules::is_workflow(path) && !pinned.contract().allow_workflow_changes;
    let refused = refused.or_else(|| {
        workflow.then(|| {
            "workflow files need `allow_workflow_changes: true` in the task's front matter"
                .to_owned()
        })
    });
    if let Some(why) = refused {
        return Ok(FileStep::Resolved(ActionResult::Refused { why }));
    }
    let old = match bench
        .sandbox
        .read(&SandboxPath::in_repo(path), MAX_FILE)
        .await
    {
        Ok(bytes) => Some(bytes),
        Err(SandboxError::NotFound(_)) => None,
        Err(SandboxError::Escapes(_)) => {
            let why = format!("`{path}` leads outside the repository");
            return Ok(FileStep::Resolved(ActionResult::Refused { why }));
        }
        Err(
            error
            @ (SandboxError::Gone(_) | SandboxError::Spawn { .. } | SandboxError::Provider(_)),
        ) => {
            return Err(error.into());
        }
        Err(error) => {
            return Ok(FileStep::Resolved(ActionResult::Failed {
                why: error.to_string(),
            }));
        }
    };
    let now = Digest::compute(old.as_deref().unwrap_or_default());
    // Only a patch can remove a file; for a write, a missing file is not an empty one.
    let comparable = old.is_some() || matches!(action, Action::Patch { .. });
    if comparable && intended.as_ref() == Some(&now) {
        return Ok(FileStep::AlreadyDone {
            path: path.clone(),
            after: now,
            mode: old.and_then(|_| stated_mode(action, path)),
        });
    }
    let before = old.clone().unwrap_or_default();
    let step = new_content(action, path, old);
    Ok(reject_placeholders(recorder, step, &before))
}

/// Refuses a write that would replace a line with its redacted form.
fn reject_placeholders(recorder: &Recorder, step: FileStep, before: &[u8]) -> FileStep {
    let FileStep::Write { path, bytes, .. } = &step else {
        return step;
    };
    let redactor = &recorder.redactor;
    let Some(line) = copied_placeholder(redactor, before, bytes) else {
        return step;
    };
    let why = format!(
        "line {line} of `{path}` is the redacted form of an existing line; `[REDACTED]` \
         stands for text that is not shown, so leave that line out of the change"
    );
    FileStep::Resolved(ActionResult::Refused { why })
}

pub(super) async fn execute_file_step(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    scratch: &mut IterationScratch,
    step: FileStep,
) -> Result<ActionEffect, RunError> {
    if let FileStep::Write { path, .. } | FileStep::Delete { path } = &step
        && !path.as_str().starts_with(".ralph/")
    {
        scratch.checks.clear();
    }
    let done = match &step {
        FileStep::Resolved(result) => return Ok(ActionEffect::from_result(result.clone())),
        FileStep::AlreadyDone { path, mode, .. } => {
            let done = "before the restart".to_owned();
            return set_file_mode(recorder, bench, controls, path, *mode, done).await;
        }
        FileStep::Write { path, bytes, .. } => {
            bench
                .sandbox
                .write(&SandboxPath::in_repo(path), bytes, WriteMode::Replace)
                .await
        }
        FileStep::Delete { path } => bench.sandbox.delete(&SandboxPath::in_repo(path)).await,
    };
    match (done, step) {
        (
            Ok(()),
            FileStep::Write {
                path, mode, detail, ..
            },
        ) => set_file_mode(recorder, bench, controls, &path, mode, detail).await,
        (Ok(()), _) => Ok(ActionEffect::done("deleted")),
        (Err(SandboxError::Escapes(path)), _) => Ok(ActionEffect::refused(format!(
            "`{path}` leads outside the repository"
        ))),
        (
            Err(
                error @ (SandboxError::Gone(_)
                | SandboxError::Spawn { .. }
                | SandboxError::Provider(_)),
            ),
            _,
        ) => Err(error.into()),
        (Err(error), _) => Ok(ActionEffect::failed(error.to_string())),
    }
}

/// Sets the mode that a patch states for a file that has been written.
async fn set_file_mode(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    path: &WorkspacePath,
    mode: Option<FileMode>,
    detail: String,
) -> Result<ActionEffect, RunError> {
    let (change, word) = match mode {
        None => return Ok(ActionEffect::done(detail)),
        Some(FileMode::Executable) => ("a+x", "executable"),
        Some(FileMode::Plain) => ("a-x", "not executable"),
    };
    let exec = Exec::argv(["chmod", change, "--", path.as_str()], MODE_TIMEOUT);
    let mut capture = Capture::new(&recorder.redactor);
    let why = match bench.exec(recorder, controls, exec, &mut capture).await {
        Ok(outcome) if outcome.ended.is_success() => {
            return Ok(ActionEffect::done(format!("{detail}, {word}")));
        }
        Ok(outcome) => outcome.ended.to_string(),
        Err(RunError::Sandbox(error @ SandboxError::Interrupted { .. })) => error.to_string(),
        Err(error) => return Err(error),
    };
    Ok(ActionEffect::failed(format!(
        "`{path}` was written but could not be made {word}: {why}"
    )))
}

/// Returns the mode that a patch states for its file.
fn stated_mode(action: &Action, path: &WorkspacePath) -> Option<FileMode> {
    if let Action::Patch { patch: diff, .. } = action {
        patch::patched_mode(path.as_str(), diff)
    } else {
        None
    }
}

fn new_content(action: &Action, path: &WorkspacePath, old: Option<Vec<u8>>) -> FileStep {
    let failed = |why: String| FileStep::Resolved(ActionResult::Failed { why });
    match action {
        Action::Write { content, mode, .. } => {
            let bytes = match mode {
                WriteMode::Replace => content.clone().into_bytes(),
                WriteMode::Append => {
                    [old.unwrap_or_default(), content.clone().into_bytes()].concat()
                }
            };
            if bytes.len() as u64 > MAX_FILE {
                return failed(format!(
                    "`{path}` would have {} bytes, at most {MAX_FILE} are allowed",
                    bytes.len()
                ));
            }
            let detail = format!("{} bytes", bytes.len());
            FileStep::Write {
                path: path.clone(),
                bytes,
                mode: None,
                detail,
            }
        }
        Action::Patch { patch: diff, .. } => {
            let Ok(text) = old.map(String::from_utf8).transpose() else {
                return failed(format!("`{path}` is not a text file"));
            };
            match patch::apply(path.as_str(), text.as_deref(), diff) {
                Ok(patch::PatchedFile {
                    text: Some(text),
                    mode,
                    fuzzy,
                    ..
                }) => {
                    let detail = if fuzzy {
                        "applied at a different position"
                    } else {
                        "applied"
                    };
                    FileStep::Write {
                        path: path.clone(),
                        bytes: text.into_bytes(),
                        mode,
                        detail: detail.into(),
                    }
                }
                Ok(patch::PatchedFile { text: None, .. }) => {
                    FileStep::Delete { path: path.clone() }
                }
                Err(error) => failed(error.to_string()),
            }
        }
        Action::Run { .. }
        | Action::Commit { .. }
        | Action::Rotate { .. }
        | Action::Pause { .. }
        | Action::StopSuccess { .. }
        | Action::StopFailure { .. } => failed("not a file action".into()),
    }
}

//! Saves the files of a run under `refs/ralph/<task_id>`, in the run's repository and at the source
//! host, so that the run can be rebuilt if its directory is lost.

use ralph_core::event::{DeliveryEvent, Event, RunEvent};
use ralph_core::run::RunStatus;
use ralph_core::state::RunState;

use super::publish::push_and_sync;
use super::saved_files::{SNAPSHOT_FILE, SavedFiles, SnapshotManifest};
use crate::error::RunError;
use crate::git::{GitError, SnapshotFiles};
use crate::recorder::Recorder;
use crate::services::Services;
use crate::workbench::Workbench;

/// The most attempts to save: runs of the same task save under the same ref.
const MAX_SAVE_ATTEMPTS: usize = 20;

/// The saves of one process.
#[derive(Debug, Default)]
pub(crate) struct SaveProgress {
    /// Whether the source host refused a save, so that no other one is tried.
    is_refused: bool,
    /// Whether the omission of a needed file was reported.
    is_omission_reported: bool,
}

/// A save, and the needed files that did not fit.
struct Saved {
    event: DeliveryEvent,
    omitted: Vec<String>,
}

/// Saves the run's files with the status that the run has or is about to get, unless the settings forbid it or nothing was recorded since the last save.
pub(crate) async fn save_state(
    recorder: &mut Recorder,
    bench: &Workbench,
    services: &Services,
    status: &RunStatus,
) -> Result<(), RunError> {
    let state = recorder.state();
    if !is_due(state) {
        return Ok(());
    }
    let reference = format!("refs/ralph/{}", state.plan.task_id);
    if recorder.saves.is_refused {
        return Ok(());
    }
    let notice = |message| Event::Run(RunEvent::Notice { message });
    match save(recorder, bench, services, (&reference, status)).await {
        Ok(Saved { event, omitted }) => {
            recorder.append(event)?;
            if !omitted.is_empty() && !recorder.saves.is_omission_reported {
                recorder.saves.is_omission_reported = true;
                let omitted = omitted.join(", ");
                let message = format!(
                    "{reference} omits {omitted}, because the files of the run are too large: the run cannot be rebuilt from it"
                );
                recorder.append(notice(message))?;
            }
            Ok(())
        }
        // The host's copy is authoritative; the side ref is only a backup.
        Err(error) => {
            let again = if recorder.saves.is_refused {
                "; this process does not try again"
            } else {
                ""
            };
            let message = format!("the run's files were not saved to {reference}: {error}{again}");
            recorder.append(notice(message))
        }
    }
}

/// Returns whether the settings allow the save, and something was recorded since the last one.
fn is_due(state: &RunState) -> bool {
    let settings = state.plan.settings.as_ref();
    let is_enabled = settings.is_none_or(|settings| settings.state_ref != Some(false));
    is_enabled && state.saved_at != Some(state.seq)
}

async fn save(
    recorder: &mut Recorder,
    bench: &Workbench,
    services: &Services,
    (reference, status): (&str, &RunStatus),
) -> Result<Saved, RunError> {
    recorder.files.sync()?;
    let selected = SavedFiles::select(recorder.dir.root())?;
    let manifest = SnapshotManifest::new(&recorder.journal, status, &selected).to_json();
    let (dir, repo, remote) = (recorder.dir.root(), &bench.repo, services.scm.remote());
    let files = SnapshotFiles {
        dir,
        paths: &selected.paths,
        generated: (SNAPSHOT_FILE, manifest.as_bytes()),
    };
    let message = format!("State of run {}\n", recorder.state().plan.run);
    let snapshot = || repo.commit_snapshot(&files, reference, &message);
    repo.fetch_if_missing(remote, reference).await?;
    let mut commit = snapshot().await?;
    let mut pushed = push_and_sync(recorder, bench, services, &commit, reference).await;
    for _ in 1..MAX_SAVE_ATTEMPTS {
        let is_refused = matches!(
            &pushed,
            Err(RunError::Git(
                GitError::Moved { .. } | GitError::Failed { .. }
            ))
        );
        if !is_refused {
            break;
        }
        // Another run of the same task may have saved its files in the meantime.
        if !repo.has_other_ref(remote, reference, &commit).await? {
            recorder.saves.is_refused = true;
            break;
        }
        repo.fetch_latest(remote, reference).await?;
        commit = snapshot().await?;
        pushed = push_and_sync(recorder, bench, services, &commit, reference).await;
    }
    pushed?;
    let event = DeliveryEvent::StateSaved {
        reference: reference.to_owned(),
        commit,
    };
    let omitted = selected.omitted_essentials().map(str::to_owned).collect();
    Ok(Saved { event, omitted })
}

#[cfg(test)]
mod tests;

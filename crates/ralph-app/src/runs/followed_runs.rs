//! All unfinished runs, followed while they progress.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ralph_core::event::{Event, RunEvent};
use ralph_core::id::RunId;
use ralph_core::notify::NotifyKind;
use ralph_engine::store::{RunDir, StateDir};
use serde::Serialize;
use utoipa::ToSchema;

use super::activity_label::activity_label;
use super::summary::RunSummary;
use crate::error::AppError;
use crate::follow::JournalFollower;

/// An unfinished run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RunActivity {
    #[serde(flatten)]
    pub summary: RunSummary,
    pub title: String,
    /// The path of the repository.
    pub repo: String,
    /// The running time without pauses, up to now if a process works on the run.
    pub active_seconds: u64,
    /// What the run does now, if a process works on it.
    pub activity: Option<String>,
    /// The start of the activity.
    pub activity_since: Option<jiff::Timestamp>,
    /// The process that works on the run.
    #[serde(skip)]
    pub owner_pid: Option<u32>,
    /// Whether the run waits for the user.
    #[serde(skip)]
    pub needs_user: bool,
}

/// The unfinished runs of a state directory. Each journal is read once, then only its new records.
#[derive(Debug, Default)]
pub struct FollowedRuns {
    runs: BTreeMap<RunId, FollowedRun>,
    ended: BTreeSet<RunId>,
    unreadable: BTreeSet<RunId>,
}

#[derive(Debug)]
struct FollowedRun {
    dir: RunDir,
    journal: JournalFollower,
    activity: Option<(String, jiff::Timestamp)>,
}

impl FollowedRuns {
    /// Reads the new records of all unfinished runs. Returns the runs, newest first.
    pub fn read(
        &mut self,
        state: &StateDir,
        now: jiff::Timestamp,
    ) -> Result<Vec<RunActivity>, AppError> {
        let mut activities = Vec::new();
        for id in state.runs()?.into_iter().rev() {
            if self.ended.contains(&id) || self.unreadable.contains(&id) {
                continue;
            }
            let run = self.runs.entry(id.clone());
            let run = run.or_insert_with(|| FollowedRun::new(state.run(&id)));
            if let Err(error) = run.read() {
                tracing::debug!(%error, "cannot read run `{id}`");
                self.runs.remove(&id);
                self.unreadable.insert(id);
                continue;
            }
            match run.journal.state() {
                Some(state) if state.status.is_final() => {
                    self.runs.remove(&id);
                    self.ended.insert(id);
                }
                Some(_) => activities.extend(run.describe(now)),
                // Its first record is being written.
                None => {}
            }
        }
        Ok(activities)
    }

    /// Returns the number of runs that cannot be read.
    pub fn unreadable(&self) -> usize {
        self.unreadable.len()
    }
}

impl FollowedRun {
    fn new(dir: RunDir) -> Self {
        Self {
            journal: JournalFollower::new(&dir),
            dir,
            activity: None,
        }
    }

    fn read(&mut self) -> Result<(), AppError> {
        let activity = &mut self.activity;
        self.journal.read_new(&mut |record, state| {
            // A periodic record does not change what the run does.
            if record.event == Event::Run(RunEvent::StillActive {}) {
                return;
            }
            let label = activity_label(record, state);
            if activity.as_ref().map(|(label, _)| label) != label.as_ref() {
                *activity = label.map(|label| (label, record.at));
            }
        })?;
        Ok(())
    }

    fn describe(&self, now: jiff::Timestamp) -> Option<RunActivity> {
        let state = self.journal.state()?;
        let is_working = self.dir.is_held() && state.status.is_active();
        let since_record = if is_working {
            Duration::try_from(now.duration_since(state.updated_at)).unwrap_or(Duration::ZERO)
        } else {
            Duration::ZERO
        };
        let activity = self.activity.clone().filter(|_| self.dir.is_held());
        Some(RunActivity {
            summary: RunSummary::from_state(&self.dir, state),
            title: state.plan.title.clone(),
            repo: state.plan.repo.clone(),
            active_seconds: (state.active + since_record).as_secs(),
            activity_since: activity.as_ref().map(|(_, since)| *since),
            activity: activity.map(|(label, _)| label),
            owner_pid: state.pid.filter(|_| self.dir.is_held()),
            needs_user: NotifyKind::for_status(&state.status) == Some(NotifyKind::NeedsYou),
        })
    }
}

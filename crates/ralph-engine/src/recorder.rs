//! The record of a run: its journal, its directory, its log files, and the figures derived from
//! them.
//!
//! A recorder needs no sandbox, so that commands of the user can be recorded for a run that no
//! process is working on.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget::{self, Budget, BudgetLimits};
use ralph_core::event::{Event, RunEvent, SandboxEvent};
use ralph_core::ports::Clock;
use ralph_core::run::{FailReason, RunStatus};
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;

use crate::delivery::SaveProgress;
use crate::error::RunError;
use crate::journal::Journal;
use crate::live_output::{LiveOutput, LiveSource};
use crate::store::RunDir;
use crate::workspace::{HostFiles, TamperFinding};

/// Writes the journal and the files of a run.
pub(crate) struct Recorder {
    pub(crate) dir: RunDir,
    pub(crate) journal: Journal,
    pub(crate) files: HostFiles,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) redactor: Redactor,
    /// The spending at the last check for warnings.
    spent_at_last_warning: budget::Spent,
    /// The budget that could not pay for a model call, and the limits at that time.
    unaffordable: Option<(Budget, BudgetLimits)>,
    /// The saves of the run's files in this process.
    pub(crate) saves: SaveProgress,
}

impl Recorder {
    pub(crate) fn new(
        dir: RunDir,
        journal: Journal,
        files: HostFiles,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
    ) -> Self {
        let spent_at_last_warning = journal.state().spent();
        Self {
            dir,
            journal,
            files,
            clock,
            redactor,
            spent_at_last_warning,
            unaffordable: None,
            saves: SaveProgress::default(),
        }
    }

    pub(crate) fn state(&self) -> &RunState {
        self.journal.state()
    }

    /// Starts a section of the open iteration's live output.
    pub(crate) fn live_output(&self, source: LiveSource<'_>) -> LiveOutput {
        LiveOutput::start(&self.dir, self.state(), &self.redactor, source)
    }

    /// Writes an event to the journal and syncs it.
    pub(crate) fn append(&mut self, event: impl Into<Event>) -> Result<(), RunError> {
        self.journal.append(event)?;
        Ok(())
    }

    /// Writes several events to the journal with one sync.
    pub(crate) fn append_all(
        &mut self,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<(), RunError> {
        self.journal.append_all(events)?;
        Ok(())
    }

    /// Records a status, unless the run has it already.
    pub(crate) fn set_status(&mut self, status: RunStatus) -> Result<(), RunError> {
        if self.state().status != status {
            self.append(RunEvent::StatusChanged { status })?;
        }
        Ok(())
    }

    pub(crate) fn log_activity(&mut self, text: &str) -> Result<(), RunError> {
        self.log_activity_at(self.clock.now(), text)
    }

    /// Logs an activity with the time at which it happened.
    pub(crate) fn log_activity_at(
        &mut self,
        at: jiff::Timestamp,
        text: &str,
    ) -> Result<(), RunError> {
        let iteration = self.state().iteration;
        Ok(self.files.log_activity(at, iteration, text)?)
    }

    pub(crate) fn log_error(&mut self, text: &str) -> Result<(), RunError> {
        let (at, iteration) = (self.clock.now(), self.state().iteration);
        Ok(self.files.log_error(at, iteration, text)?)
    }

    /// Records changes that a command made to files of the runner.
    pub(crate) fn record_tampering(
        &mut self,
        findings: Vec<TamperFinding>,
    ) -> Result<(), RunError> {
        for TamperFinding { path, finding } in findings {
            self.log_error(&format!("tamper: `{path}`: {finding}"))?;
            let iteration = self.state().iteration;
            self.append(SandboxEvent::Tamper {
                iteration,
                path,
                finding,
            })?;
        }
        Ok(())
    }

    /// Appends a text to a file of the run, unless the file contains it already.
    pub(crate) fn append_once(&self, name: &str, text: &str) -> Result<bool, RunError> {
        let current = self.files.text(name)?;
        if current.contains(text) {
            return Ok(false);
        }
        let newline = if current.is_empty() || current.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        self.files
            .replace(name, format!("{current}{newline}{text}").as_bytes())?;
        Ok(true)
    }
}

/// Checks of the run's budgets.
impl Recorder {
    /// Returns the limits of the contract in force.
    pub(crate) fn limits(&self) -> &BudgetLimits {
        &self.state().limits
    }

    /// Returns the spending of the run up to this moment.
    pub(crate) fn spent(&self) -> budget::Spent {
        budget::Spent {
            wall_time: self.journal.active(),
            ..self.state().spent()
        }
    }

    /// Returns the first budget that is used up, if any.
    pub(crate) fn exhausted_budget(&self) -> Option<Budget> {
        budget::exhausted(self.limits(), &self.spent())
    }

    /// Returns the remaining wall time, but at least a second.
    pub(crate) fn time_left(&self) -> Duration {
        let limit = self.limits().max_wall_time.unwrap_or(Duration::MAX);
        limit
            .saturating_sub(self.journal.active())
            .max(Duration::from_secs(1))
    }

    /// Returns the timeout of one command: that of the plan, or else `usual`, and never more than the
    /// remaining wall time.
    pub(crate) fn command_timeout(&self, usual: Duration) -> Duration {
        let settings = self.state().plan.settings.as_ref();
        let minutes = settings.and_then(|settings| settings.command_timeout_minutes);
        let planned = minutes.map(|minutes| Duration::from_mins(u64::from(minutes)));
        planned.unwrap_or(usual).min(self.time_left())
    }

    /// Remembers that a budget cannot pay for the next model call.
    pub(crate) fn mark_unaffordable(&mut self, budget: Budget) {
        self.unaffordable = Some((budget, self.limits().clone()));
    }

    /// Returns the status of a run whose budgets do not allow another iteration.
    ///
    /// An iteration that a crash left open is already paid for.
    pub(crate) fn status_without_budget(&self) -> Option<RunStatus> {
        if self.state().open.is_some() {
            return None;
        }
        let unaffordable = self
            .unaffordable
            .as_ref()
            .filter(|(_, limits)| limits == self.limits())
            .map(|(budget, _)| *budget);
        let budget = unaffordable
            .or_else(|| budget::may_start_iteration(self.limits(), &self.spent()).err())?;
        Some(RunStatus::Failed(FailReason::Budget { budget }))
    }

    /// Warns about each threshold that spending has passed since the last call.
    pub(crate) fn warn_about_budgets(&mut self) -> Result<(), RunError> {
        let spent = self.spent();
        let due = budget::warnings(self.limits(), &self.spent_at_last_warning, &spent);
        self.spent_at_last_warning = spent;
        for (budget, percent) in due {
            self.log_activity(&format!("{percent} % of budget `{}` used", budget.key()))?;
            self.append(RunEvent::BudgetWarning { budget, percent })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ralph_core::plan::PinnedSettings;
    use serde_json::json;

    use crate::run_fixture::RunFixture;

    #[tokio::test]
    async fn the_plan_limits_the_time_of_a_command() {
        let minutes = Duration::from_mins;
        // The wall time of the fixture's task is 5 minutes.
        for (planned, usual, expected) in [
            (Some(1), minutes(3), minutes(1)),
            (Some(1), Duration::from_secs(10), minutes(1)),
            (None, minutes(3), minutes(3)),
        ] {
            let settings = PinnedSettings {
                command_timeout_minutes: planned,
                ..PinnedSettings::default()
            };
            let more = json!({ "settings": settings });
            let fixture = Box::pin(RunFixture::with_plan("", &[], more)).await;
            let timeout = fixture.run.recorder.command_timeout(usual);
            assert_eq!(timeout, expected, "{planned:?} {usual:?}");
        }
        let settings = PinnedSettings {
            command_timeout_minutes: Some(60),
            ..PinnedSettings::default()
        };
        let more = json!({ "settings": settings });
        let fixture = Box::pin(RunFixture::with_plan("", &[], more)).await;
        let timeout = fixture.run.recorder.command_timeout(minutes(60));
        assert!(
            timeout <= minutes(5),
            "the wall time is shorter: {timeout:?}"
        );
    }
}

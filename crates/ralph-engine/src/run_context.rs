//! What is needed to do something for a run between its iterations, whether a process works on it or
//! not.

use std::time::Duration;

use ralph_core::budget::{self, Budget};
use ralph_core::state::RunState;

use crate::contract::PinnedTask;
use crate::control::Control;
use crate::error::RunError;
use crate::journal::Journal;
use crate::run::{Run, Services};
use crate::store::RunDir;
use crate::workspace::HostFiles;

/// The parts of a run that outlive its sandbox.
pub(crate) struct RunContext<'a> {
    pub(crate) dir: &'a RunDir,
    pub(crate) journal: &'a mut Journal,
    pub(crate) files: &'a mut HostFiles,
    pub(crate) pinned: &'a PinnedTask,
    pub(crate) services: &'a Services,
    pub(crate) control: &'a mut Control,
}

impl Run {
    /// Returns what can be worked with between iterations.
    pub(crate) fn context(&mut self) -> RunContext<'_> {
        RunContext {
            dir: &self.dir,
            journal: &mut self.journal,
            files: &mut self.files,
            pinned: &self.pinned,
            services: &self.services,
            control: &mut self.control,
        }
    }
}

impl RunContext<'_> {
    pub(crate) fn state(&self) -> &RunState {
        self.journal.state()
    }

    pub(crate) fn log_activity(&mut self, text: &str) -> Result<(), RunError> {
        let (at, iteration) = (self.services.clock.now(), self.journal.state().iteration);
        Ok(self.files.log_activity(at, iteration, text)?)
    }

    pub(crate) fn log_error(&mut self, text: &str) -> Result<(), RunError> {
        let (at, iteration) = (self.services.clock.now(), self.journal.state().iteration);
        Ok(self.files.log_error(at, iteration, text)?)
    }

    /// Returns the budget that is used up, if any.
    pub(crate) fn exhausted_budget(&self) -> Option<Budget> {
        let spent = budget::Spent {
            wall_time: self.journal.active(),
            ..self.state().spent()
        };
        budget::exhausted(&self.pinned.contract().limits(), &spent)
    }

    /// Returns how long something may still take, and never longer than `most`.
    pub(crate) fn time_left(&self, most: Duration) -> Duration {
        let limit = self.pinned.contract().limits().max_wall_time;
        let left = limit.map(|limit| limit.saturating_sub(self.journal.active()));
        left.unwrap_or(most).clamp(Duration::from_secs(1), most)
    }

    /// Adds a text to the end of a file, unless it is there already.
    pub(crate) fn append_once(&self, name: &str, text: &str) -> Result<bool, RunError> {
        let there = self.files.text(name)?;
        if there.contains(text) {
            return Ok(false);
        }
        let newline = if there.is_empty() || there.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        self.files
            .replace(name, format!("{there}{newline}{text}").as_bytes())?;
        Ok(true)
    }
}

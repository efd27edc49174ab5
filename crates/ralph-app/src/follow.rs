//! Reads a journal while it grows.

use std::path::PathBuf;
use std::time::Duration;

use ralph_core::event::JournalRecord;
use ralph_core::state::RunState;
use ralph_engine::journal::{self, JournalError};
use ralph_engine::store::RunDir;

/// The interval at which a growing file is polled.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A position in a journal, with the state of the run at that position.
#[derive(Debug)]
pub struct JournalFollower {
    path: PathBuf,
    offset: u64,
    state: Option<RunState>,
}

impl JournalFollower {
    /// Starts at the beginning of a run's journal.
    pub fn new(dir: &RunDir) -> Self {
        Self {
            path: dir.journal(),
            offset: 0,
            state: None,
        }
    }

    /// Passes on the new records since the last call, each with the state of the run at that point.
    pub fn read_new(
        &mut self,
        each: &mut dyn FnMut(&JournalRecord, &RunState),
    ) -> Result<(), JournalError> {
        let (records, offset) = journal::read_from(&self.path, self.offset)?;
        self.offset = offset;
        for record in &records {
            match &mut self.state {
                Some(state) => state.apply(record),
                None => self.state = RunState::from_first_record(record),
            }
            if let Some(state) = &self.state {
                each(record, state);
            }
        }
        Ok(())
    }

    /// Returns the state of the run after the records read so far, or `None` before the first
    /// record.
    pub fn state(&self) -> Option<&RunState> {
        self.state.as_ref()
    }
}

/// The reason why following a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowEnd {
    /// The run has ended; no more records can follow.
    Finished,
    /// No process works on the run: it waits, or its process is gone.
    Unattended,
}

/// Passes on records until the run ends or no process works on it.
pub fn follow(
    dir: &RunDir,
    reader: &mut JournalFollower,
    each: &mut dyn FnMut(&JournalRecord, &RunState),
) -> Result<FollowEnd, JournalError> {
    loop {
        // Checked before reading, so that the last records of a process are not missed.
        let held = dir.is_held();
        reader.read_new(each)?;
        if reader.state().is_some_and(|state| state.status.is_final()) {
            return Ok(FollowEnd::Finished);
        }
        if !held {
            return Ok(FollowEnd::Unattended);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

//! Reads a journal as it grows.

use std::path::PathBuf;
use std::time::Duration;

use ralph_core::event::JournalRecord;
use ralph_core::state::RunState;
use ralph_engine::journal::{self, JournalError};
use ralph_engine::store::RunDir;

/// How often a growing file is looked at.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A place in a journal, and where the run stood there.
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

    /// Hands over the records that have come since the last time, each with where the run then stood.
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

    /// Returns where the run stands after what was read; none before the first record.
    pub fn state(&self) -> Option<&RunState> {
        self.state.as_ref()
    }
}

/// Why following a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowEnd {
    /// Nothing can follow any more.
    Finished,
    /// Nobody works on it: it waits, or its process is gone.
    Unattended,
}

/// Hands over records until the run ends or nobody works on it any more.
pub fn follow(
    dir: &RunDir,
    reader: &mut JournalFollower,
    each: &mut dyn FnMut(&JournalRecord, &RunState),
) -> Result<FollowEnd, JournalError> {
    loop {
        // Asked before reading, so that the last words of a process are not missed.
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

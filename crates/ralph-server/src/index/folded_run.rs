//! A run whose journal was read: its state, and what is to be stored about its new records.

use ralph_core::event::{Event, IterationEvent, IterationMetrics, JournalRecord};
use ralph_core::state::RunState;
use ralph_engine::journal::{self, JournalError, JournalPosition};
use ralph_engine::store::RunDir;

/// The distance of two marks, which bounds the part of a journal that a jump reads.
const MARK_DISTANCE: u64 = 256 * 1024;

/// The state of a run at a position of its journal.
#[derive(Debug)]
pub(super) struct FoldedRun {
    pub(super) position: JournalPosition,
    pub(super) state: RunState,
    last_mark: u64,
}

/// The records that a reading added.
#[derive(Debug, Default)]
pub(super) struct NewRecords {
    /// The number and the offset of some records.
    pub(super) marks: Vec<(u64, u64)>,
    pub(super) iterations: Vec<FinishedIteration>,
}

/// The end of an iteration.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FinishedIteration {
    pub(super) at: jiff::Timestamp,
    pub(super) metrics: IterationMetrics,
}

impl FoldedRun {
    /// Reads a whole journal. `known` is the number and the digest of a record that it contained before;
    /// the second result is whether it still does.
    pub(super) fn read(
        dir: &RunDir,
        known: Option<(u64, &str)>,
    ) -> Result<(Self, NewRecords, bool), JournalError> {
        let path = dir.journal();
        let mut new = NewRecords::default();
        let mut state: Option<RunState> = None;
        let mut last_mark = 0;
        let mut has_known = known.is_none();
        let mut each = |record: &JournalRecord, offset: u64| {
            // The record after the known one contains its digest.
            has_known |= known.is_some_and(|(seq, digest)| {
                record.seq == seq + 1 && record.prev.as_str() == digest
            });
            match &mut state {
                Some(state) => state.apply(record),
                None => state = RunState::from_first_record(record),
            }
            new.add(record, offset, &mut last_mark);
        };
        let position = journal::read_after(&path, &JournalPosition::start(), &mut each)?;
        has_known |= known
            .is_some_and(|(seq, digest)| position.seq == seq && position.digest.as_str() == digest);
        let state = state.ok_or(JournalError::Empty { path })?;
        let run = Self {
            position,
            state,
            last_mark,
        };
        Ok((run, new, has_known))
    }

    /// Reads the records that were appended since.
    pub(super) fn read_new(&mut self, dir: &RunDir) -> Result<NewRecords, JournalError> {
        let mut new = NewRecords::default();
        let Self {
            position,
            state,
            last_mark,
        } = self;
        let mut each = |record: &JournalRecord, offset: u64| {
            state.apply(record);
            new.add(record, offset, last_mark);
        };
        *position = journal::read_after(&dir.journal(), position, &mut each)?;
        Ok(new)
    }
}

impl NewRecords {
    fn add(&mut self, record: &JournalRecord, offset: u64, last_mark: &mut u64) {
        if offset >= *last_mark + MARK_DISTANCE {
            self.marks.push((record.seq, offset));
            *last_mark = offset;
        }
        if let Event::Iteration(IterationEvent::IterationFinished { metrics, .. }) = &record.event {
            self.iterations.push(FinishedIteration {
                at: record.at,
                metrics: (**metrics).clone(),
            });
        }
    }
}

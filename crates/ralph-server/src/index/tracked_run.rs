//! A run in the index: whether it has changed, and how it is described.

use ralph_app::runs::{RunDetails, RunSummary};
use ralph_core::id::RunId;
use ralph_engine::journal::{JournalError, RunOutline};
use ralph_engine::store::RunDir;
use serde_json::Value;

use super::feed::NO_RECORDS;
use super::folded_run::{FoldedRun, NewRecords};
use super::journal_file::JournalFile;

/// What the index knows about a run.
#[derive(Debug)]
pub(super) struct TrackedRun {
    pub(super) sort_key: String,
    pub(super) file: JournalFile,
    /// The number and the digest of the last record; 0 and empty if the journal cannot be read.
    pub(super) seq: u64,
    pub(super) digest: String,
    /// Whether the status requires a process, and whether a process had the run.
    pub(super) needs_process: bool,
    pub(super) held: bool,
    pub(super) ended: bool,
    /// The state of an unfinished run, so that only new records are read.
    pub(super) fold: Option<Box<FoldedRun>>,
}

/// The description of a run as it is stored.
#[derive(Debug)]
pub(super) struct RunRow {
    pub(super) id: RunId,
    pub(super) sort_key: String,
    pub(super) status: String,
    pub(super) repo: String,
    pub(super) search_text: String,
    pub(super) details: String,
    pub(super) needs_process: bool,
    pub(super) held: bool,
    pub(super) ended: bool,
    pub(super) file: JournalFile,
    pub(super) seq: u64,
    pub(super) digest: String,
}

/// How the records of an update relate to the stored ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateKind {
    /// They follow.
    Appended,
    /// They are all records of the journal, which contains the stored ones.
    Reread,
    /// They are all records of another journal, or the journal can no longer be read.
    Replaced,
}

/// A change of a run that is to be stored.
#[derive(Debug)]
pub(super) struct RunUpdate {
    pub(super) row: RunRow,
    pub(super) kind: UpdateKind,
    pub(super) records: NewRecords,
    /// The first and the last record that the feed does not name yet, or [`NO_RECORDS`].
    pub(super) unpublished: (u64, u64),
}

impl TrackedRun {
    /// Returns whether the run may have changed since it was described.
    pub(super) fn has_changed(&self, dir: &RunDir, file: &JournalFile) -> bool {
        self.file != *file || (self.needs_process && self.held != dir.is_held())
    }
}

/// Describes a run, and reads the new records of its journal.
pub(super) fn describe(
    (id, sort_key): (&RunId, &str),
    dir: &RunDir,
    file: JournalFile,
    tracked: Option<TrackedRun>,
) -> (TrackedRun, RunUpdate) {
    // Before the state, so that a process that starts in between is noticed as a change.
    let held = dir.is_held();
    let known = tracked.as_ref().map(|run| (run.seq, run.digest.clone()));
    let read = match tracked {
        Some(run) => read_records(dir, &file, run),
        None => FoldedRun::read(dir, None).map(|(fold, new, _)| (fold, new, UpdateKind::Reread)),
    };
    let (fold, records, kind) = match read {
        Ok(read) => read,
        Err(error) => {
            tracing::debug!(run = %id, %error, "the index cannot read a journal");
            let kind = match known {
                Some((seq, _)) if seq > 0 => UpdateKind::Replaced,
                Some(_) | None => UpdateKind::Reread,
            };
            return describe_unreadable((id, sort_key), dir, (file, held), kind);
        }
    };
    let stored_seq = known.map_or(0, |(seq, _)| seq);
    let last = fold.position.seq;
    let row = readable_row((id, sort_key), dir, (file, held), &fold);
    let update = RunUpdate {
        unpublished: if last > stored_seq {
            (stored_seq + 1, last)
        } else {
            NO_RECORDS
        },
        kind,
        records,
        row,
    };
    (TrackedRun::new(&update.row, Some(fold)), update)
}

/// Reads the records that follow the known ones, or all if the journal is another one.
fn read_records(
    dir: &RunDir,
    file: &JournalFile,
    run: TrackedRun,
) -> Result<(FoldedRun, NewRecords, UpdateKind), JournalError> {
    let journal = dir.journal();
    let grows = run.file.is_same(file) && run.file.length <= file.length;
    if let Some(mut fold) = run.fold.filter(|_| grows)
        && fold.position.is_in(&journal)?
    {
        let new = fold.read_new(dir)?;
        return Ok((*fold, new, UpdateKind::Appended));
    }
    let (fold, new, has_known) = FoldedRun::read(dir, Some((run.seq, &run.digest)))?;
    // A journal that could not be read before has no known record.
    let kind = if has_known || run.seq == 0 {
        UpdateKind::Reread
    } else {
        UpdateKind::Replaced
    };
    Ok((fold, new, kind))
}

fn readable_row(
    (id, sort_key): (&RunId, &str),
    dir: &RunDir,
    (file, held): (JournalFile, bool),
    fold: &FoldedRun,
) -> RunRow {
    let state = &fold.state;
    let plan = &state.plan;
    let details = to_json(id, &RunDetails::from_state(dir, state));
    RunRow {
        id: id.clone(),
        sort_key: sort_key.to_owned(),
        status: text(&details, "status"),
        repo: plan.repo.clone(),
        search_text: search_text(&details, &plan.repo),
        details: details.to_string(),
        needs_process: state.status.needs_process(),
        held,
        ended: state.status.is_final(),
        file,
        seq: fold.position.seq,
        digest: fold.position.digest.to_string(),
    }
}

/// Describes a run whose journal is damaged, or was written by a newer ralph.
fn describe_unreadable(
    (id, sort_key): (&RunId, &str),
    dir: &RunDir,
    (file, held): (JournalFile, bool),
    kind: UpdateKind,
) -> (TrackedRun, RunUpdate) {
    let repo = RunOutline::read(&dir.journal()).repo.unwrap_or_default();
    let details = to_json(id, &RunSummary::read(id, dir));
    let row = RunRow {
        id: id.clone(),
        sort_key: sort_key.to_owned(),
        status: text(&details, "status"),
        search_text: search_text(&details, &repo),
        repo,
        details: details.to_string(),
        needs_process: false,
        held,
        ended: false,
        file,
        seq: 0,
        digest: String::new(),
    };
    let update = RunUpdate {
        row,
        kind,
        records: NewRecords::default(),
        unpublished: NO_RECORDS,
    };
    (TrackedRun::new(&update.row, None), update)
}

impl TrackedRun {
    fn new(row: &RunRow, fold: Option<FoldedRun>) -> Self {
        Self {
            sort_key: row.sort_key.clone(),
            file: row.file,
            seq: row.seq,
            digest: row.digest.clone(),
            needs_process: row.needs_process,
            held: row.held,
            ended: row.ended,
            fold: fold.filter(|_| !row.ended).map(Box::new),
        }
    }
}

fn to_json(id: &RunId, details: &impl serde::Serialize) -> Value {
    serde_json::to_value(details).unwrap_or_else(|error| {
        tracing::warn!(run = %id, %error, "a run cannot be described");
        serde_json::json!({ "id": id })
    })
}

fn text(details: &Value, key: &str) -> String {
    details[key].as_str().unwrap_or_default().to_owned()
}

/// Returns the text that a search compares: one line per field, in lower case.
pub(super) fn search_text(details: &Value, repo: &str) -> String {
    let fields = ["id", "task_id", "title", "branch"].map(|key| text(details, key));
    format!("{}\n{repo}", fields.join("\n")).to_lowercase()
}

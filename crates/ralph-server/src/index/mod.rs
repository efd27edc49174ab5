//! The index of all runs: a database that is derived from their files.
//!
//! [`RunIndex`] lists runs without reading their journals, finds records by their number, and numbers the
//! new records of all runs in one feed. [`RunIndex::maintain`] compares the index with the files and
//! replaces a database that is damaged or gone. Nothing of a run depends on the index.

mod changed_runs;
mod database;
mod feed;
mod folded_run;
mod index_error;
mod journal_file;
mod list;
mod location;
mod maintenance;
mod records;
mod reindex;
mod run_filter;
mod run_index;
mod stored_runs;
mod tracked_run;

pub(crate) use feed::{FeedEntry, FeedPage, FeedPosition};
pub(crate) use index_error::IndexError;
#[cfg(test)]
pub(crate) use list::RunPage;
pub(crate) use records::IterationPoint;
pub use reindex::{ReindexReport, reindex};
pub(crate) use run_filter::RunFilter;
pub(crate) use run_index::{IndexState, RunIndex};

#[cfg(test)]
mod tests;

//! A run that is killed at any moment and continued ends as if nothing had happened.
//!
//! - `points` kills at system calls: after records, between them, and while the run is continued.
//! - `leftovers` are states that only a crash leaves on the disk.
//! - `commands` are interrupted in the middle; `telling` is what people are told.
//! - `disk_errors` are syncs of the journal that fail.
//! - `rebuilt` are repositories that a disk has lost parts of.
//! - `end` continues a run and compares what it leaves behind.

mod commands;
mod disk_errors;
mod interrupted_status;
mod leftovers;
mod points;
mod rebuilt;
mod resume_checks;

//! A run that is killed at any moment and resumed ends as if it had never been interrupted.
//!
//! - `points` kills at system calls: after records, between them, and during a resume.
//! - `leftovers` are disk states that only a crash can leave.
//! - `commands` are interrupted commands; `interrupted_status` is the reported status.
//! - `disk_errors` are failing syncs of the journal.
//! - `rebuilt` are repositories that have lost parts on disk.
//! - `resume_checks` resumes a run and compares its results.

mod commands;
mod disk_errors;
mod interrupted_status;
mod leftovers;
mod points;
mod rebuilt;
mod resume_checks;

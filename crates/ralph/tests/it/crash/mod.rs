//! A run that is killed at any moment and continued ends as if nothing had happened.
//!
//! - `points` kills at system calls: after records, between them, and while the run is continued.
//! - `leftovers` are states that only a crash leaves on the disk.
//! - `commands` are interrupted in the middle; `telling` is what people are told.
//! - `end` continues a run and compares what it leaves behind.

mod commands;
mod end;
mod leftovers;
mod points;
mod telling;

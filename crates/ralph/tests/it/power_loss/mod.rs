//! A power cut at any moment: unsynced data may be lost, but no recorded data.
//!
//! - `trace` records every file system operation of a real run and of all programs that it starts.
//! - `disk` replays them and tracks which data a sync has made durable.
//! - `power_cut` selects by a seed which other operations reached the disk, and writes the
//!   surviving state directory and user's repository to their original locations.
//! - `check` compares that with the journal, and resumes the run to its end.
//! - `seeds` are the tests. `scripts/power-loss` runs them with more seeds.

mod check;
mod disk;
mod power_cut;
mod seeds;
mod trace;

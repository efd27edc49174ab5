//! A power cut at any moment: what was not synced may be lost, and nothing that was recorded is.
//!
//! - `trace` records every file system operation of a real run and of all programs that it starts.
//! - `disk` replays them, and knows what a sync has made durable.
//! - `cut` decides by a seed which of the other operations reached the disk, and writes what is left of the
//!   state directory and of the user's repository to where they were.
//! - `check` compares that with what the journal says, and continues the run to its end.
//! - `seeds` are the tests. `scripts/power-loss` runs them with more seeds.

mod check;
mod disk;
mod power_cut;
mod seeds;
mod trace;

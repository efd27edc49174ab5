//! Power cuts at moments selected by a seed.

use std::path::PathBuf;

use serde_json::Value;

use super::check::{AcknowledgedEvents, resume_and_compare};
use super::disk::SimulatedDisk;
use super::power_cut::{SeededRandom, write_survivors};
use super::trace::{DiskOperation, record, summary};
use crate::crash_stage::{BRANCH, CrashStage};
use crate::script::{gives_up, two_commits};
use crate::support::count_from_env;

/// The number of cuts, and the interval (an even number) at which the run is resumed to its end.
const SEEDS: usize = 40;
const CONTINUED_EVERY: usize = 8;

/// A recorded run.
struct RecordedRun {
    stage: CrashStage,
    before: SimulatedDisk,
    ops: Vec<DiskOperation>,
    journal: PathBuf,
    commits: Vec<String>,
}

impl RecordedRun {
    /// Records a run that ends with this exit code.
    fn new(replies: &[Value], code: i32) -> Self {
        let stage = CrashStage::with_replies(replies);
        let roots = stage.roots();
        let before = SimulatedDisk::read(&roots);
        let (output, ops) = record(&stage.start());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let mut replayed = before.clone();
        for op in &ops {
            replayed.apply(op);
        }
        let different = replayed.differences(&SimulatedDisk::read(&roots));
        assert!(
            different.is_empty(),
            "the replay is not faithful: {different:#?}"
        );
        Self {
            journal: stage.dir().journal(),
            commits: stage.commits(BRANCH),
            stage,
            before,
            ops,
        }
    }

    /// Simulates one power cut per seed and returns the errors by seed. Resumes the run after every
    /// `continued_every` cuts.
    fn cut_at_seeds(&self, seeds: usize, continued_every: usize) -> Vec<String> {
        let mut cuts: Vec<(usize, usize)> =
            (0..seeds).map(|seed| (self.moment(seed), seed)).collect();
        cuts.sort_unstable();
        let (mut disk, mut done, mut wrong) = (self.before.clone(), 0, Vec::new());
        for (moment, seed) in cuts {
            for op in &self.ops[done..moment] {
                disk.apply(op);
            }
            done = moment;
            write_survivors(&disk, &mut SeededRandom::new(seed as u64));
            let acknowledged = AcknowledgedEvents::read(&disk, &self.journal);
            let mut found = acknowledged.missing(&self.stage);
            if seed % continued_every == continued_every - 2 {
                found.extend(resume_and_compare(&self.stage, &self.commits));
                found.extend(acknowledged.lost(&self.stage));
            }
            wrong.extend(found.iter().map(|what| {
                format!(
                    "seed {seed}, after operation {moment} of {}: {what}",
                    self.ops.len()
                )
            }));
        }
        wrong
    }

    /// Returns the moment of the cut: for even seeds, right after a journal record. In the middle
    /// of an action a scripted model cannot react to a partial result, so only the former runs are
    /// resumed.
    fn moment(&self, seed: usize) -> usize {
        let mut chance = SeededRandom::new(seed as u64 ^ 0x00c0_ffee);
        let anywhere = 1 + chance.below(self.ops.len());
        let is_record = |op: &DiskOperation| matches!(op, DiskOperation::Sync { path } if *path == self.journal);
        let later = self.ops[anywhere - 1..].iter().position(is_record);
        match later.filter(|_| seed.is_multiple_of(2)) {
            Some(later) => anywhere + later,
            None => anywhere,
        }
    }
}

/// The sandbox of a failed run remains, so its files can be compared, too.
#[test]
fn a_replay_matches_the_real_disk() {
    RecordedRun::new(&[gives_up()], 10);
}

#[test]
fn nothing_that_was_recorded_is_lost() {
    let recording = RecordedRun::new(&two_commits(), 0);
    let seeds = count_from_env("RALPH_POWER_LOSS_SEEDS", SEEDS);
    let every = count_from_env("RALPH_POWER_LOSS_CONTINUED_EVERY", CONTINUED_EVERY);
    let wrong = recording.cut_at_seeds(seeds, every);
    eprintln!(
        "{seeds} power cuts in a run of {}: {} findings",
        summary(&recording.ops),
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{} findings:\n{}",
        wrong.len(),
        wrong.join("\n")
    );

    // The same run on a machine that ignores syncs of a whole file system: the check must fail.
    let ops = recording
        .ops
        .iter()
        .filter(|op| **op != DiskOperation::SyncAll);
    let careless = RecordedRun {
        ops: ops.cloned().collect(),
        ..recording
    };
    let lost = careless.cut_at_seeds(SEEDS / 2, SEEDS);
    assert!(
        !lost.is_empty(),
        "no loss was noticed where much must be lost"
    );
}

//! Power cuts at moments that a seed chooses.

use std::path::PathBuf;

use serde_json::Value;

use super::check::{Acknowledged, continued};
use super::cut::{Chance, write_remains};
use super::disk::Disk;
use super::trace::{Op, record, summary};
use crate::script::{gives_up, two_commits};
use crate::stage::{BRANCH, Stage};
use crate::support::wanted;

/// How many cuts are made, and every how many of them the run goes on to its end; an even number.
const SEEDS: usize = 40;
const CONTINUED_EVERY: usize = 8;

/// A run that was recorded from its start to its success.
struct Recording {
    stage: Stage,
    before: Disk,
    ops: Vec<Op>,
    journal: PathBuf,
    commits: Vec<String>,
}

impl Recording {
    /// Records a run that ends with this exit code.
    fn new(replies: &[Value], code: i32) -> Self {
        let stage = Stage::with_replies(replies);
        let roots = stage.roots();
        let before = Disk::read(&roots);
        let (output, ops) = record(&stage.start());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let mut replayed = before.clone();
        for op in &ops {
            replayed.apply(op);
        }
        let different = replayed.differences(&Disk::read(&roots));
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

    /// Cuts the power once for each seed and returns what was wrong, by seed. Every `continued_every` cuts the
    /// run is continued.
    fn cut(&self, seeds: usize, continued_every: usize) -> Vec<String> {
        let mut cuts: Vec<(usize, usize)> =
            (0..seeds).map(|seed| (self.moment(seed), seed)).collect();
        cuts.sort_unstable();
        let (mut disk, mut done, mut wrong) = (self.before.clone(), 0, Vec::new());
        for (moment, seed) in cuts {
            for op in &self.ops[done..moment] {
                disk.apply(op);
            }
            done = moment;
            write_remains(&disk, &mut Chance::new(seed as u64));
            let acknowledged = Acknowledged::read(&disk, &self.journal);
            let mut found = acknowledged.missing(&self.stage);
            if seed % continued_every == continued_every - 2 {
                found.extend(continued(&self.stage, &self.commits));
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

    /// Returns when the power is cut: for even seeds right after a record of the journal. In the middle of an
    /// action a scripted model cannot react to what is left of it, so only these runs are continued.
    fn moment(&self, seed: usize) -> usize {
        let mut chance = Chance::new(seed as u64 ^ 0x00c0_ffee);
        let anywhere = 1 + chance.below(self.ops.len());
        let is_record = |op: &Op| matches!(op, Op::Sync { path } if *path == self.journal);
        let later = self.ops[anywhere - 1..].iter().position(is_record);
        match later.filter(|_| seed.is_multiple_of(2)) {
            Some(later) => anywhere + later,
            None => anywhere,
        }
    }
}

/// The sandbox of a run that failed is kept, so its files can be compared, too.
#[test]
fn a_replay_is_what_the_machine_has() {
    Recording::new(&[gives_up()], 10);
}

#[test]
fn nothing_that_was_recorded_is_lost() {
    let recording = Recording::new(&two_commits(), 0);
    let seeds = wanted("RALPH_POWER_LOSS_SEEDS", SEEDS);
    let every = wanted("RALPH_POWER_LOSS_CONTINUED_EVERY", CONTINUED_EVERY);
    let wrong = recording.cut(seeds, every);
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

    // The same run on a machine that ignores syncs of a whole file system: the check must notice.
    let ops = recording.ops.iter().filter(|op| **op != Op::SyncAll);
    let careless = Recording {
        ops: ops.cloned().collect(),
        ..recording
    };
    let lost = careless.cut(SEEDS / 2, SEEDS);
    assert!(
        !lost.is_empty(),
        "no loss was noticed where much must be lost"
    );
}

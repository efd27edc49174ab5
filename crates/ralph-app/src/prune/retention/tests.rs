//! Tests of every case of the retention rules.

use super::*;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

const STATE_DIR_OWNERS: [StateDirOwner; 4] = [
    StateDirOwner::Own,
    StateDirOwner::Foreign,
    StateDirOwner::Missing,
    StateDirOwner::Unknown,
];
const CREATORS: [SandboxCreator; 4] = [
    SandboxCreator::Ended,
    SandboxCreator::MaybeAlive,
    SandboxCreator::Unknown,
    SandboxCreator::Unfinished,
];
const RUN_STATUSES: [SandboxRunStatus; 7] = [
    SandboxRunStatus::NoRun,
    SandboxRunStatus::Missing,
    SandboxRunStatus::Held,
    SandboxRunStatus::Unreadable,
    SandboxRunStatus::Ended(HOUR),
    SandboxRunStatus::Resumable(HOUR),
    SandboxRunStatus::ResumableElsewhere,
];

fn candidate(
    home: StateDirOwner,
    maker: SandboxCreator,
    standing: SandboxRunStatus,
) -> PruneCandidate {
    PruneCandidate {
        state_dir_owner: home,
        creator: maker,
        run_status: standing,
        content: SandboxContent::NoWork,
        age: None,
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn own_sandboxes_by_creator_and_run_status() {
    use KeepReason::{ForInspection, Held, MaybeInUse, Resumable, Unreadable};
    use RemovalReason::{Expired, RunEnded, RunMissing, Unowned, Unused};
    use SandboxCreator::{Ended as Dead, MaybeAlive, Unknown};
    let keep = PruneVerdict::Keep;
    let remove = PruneVerdict::Remove;
    let person = RetentionPolicy::for_command(None, OrphanPolicy::Keep);
    let strict = RetentionPolicy::for_command(Some(HOUR), OrphanPolicy::Keep);
    let run = RetentionPolicy::for_run_start();
    let cases = [
        (SandboxRunStatus::NoRun, Dead, person, remove(Unowned)),
        (
            SandboxRunStatus::NoRun,
            MaybeAlive,
            person,
            keep(MaybeInUse),
        ),
        (SandboxRunStatus::NoRun, Unknown, person, keep(MaybeInUse)),
        (SandboxRunStatus::Missing, Dead, person, remove(RunMissing)),
        (SandboxRunStatus::Missing, Dead, run, remove(RunMissing)),
        (
            SandboxRunStatus::Missing,
            Unknown,
            person,
            remove(RunMissing),
        ),
        (
            SandboxRunStatus::Missing,
            MaybeAlive,
            strict,
            keep(MaybeInUse),
        ),
        (SandboxRunStatus::Held, Dead, strict, keep(Held)),
        (SandboxRunStatus::Held, Unknown, run, keep(Held)),
        (SandboxRunStatus::Unreadable, Dead, strict, keep(Unreadable)),
        (
            SandboxRunStatus::Ended(Duration::ZERO),
            Dead,
            person,
            remove(RunEnded),
        ),
        (
            SandboxRunStatus::Ended(HOUR),
            MaybeAlive,
            person,
            remove(RunEnded),
        ),
        (
            SandboxRunStatus::Ended(HOUR),
            Dead,
            run,
            keep(ForInspection),
        ),
        (SandboxRunStatus::Ended(DAY), Dead, run, remove(RunEnded)),
        (
            SandboxRunStatus::Resumable(DAY),
            Dead,
            person,
            keep(Resumable),
        ),
        (SandboxRunStatus::Resumable(DAY), Dead, run, keep(Resumable)),
        (
            SandboxRunStatus::Resumable(HOUR / 2),
            Dead,
            strict,
            keep(Resumable),
        ),
        (
            SandboxRunStatus::Resumable(HOUR),
            Dead,
            strict,
            remove(Expired),
        ),
        (
            SandboxRunStatus::ResumableElsewhere,
            Dead,
            run,
            remove(Unused),
        ),
    ];
    for (standing, maker, patience, expected) in cases {
        let verdict = decide(&candidate(StateDirOwner::Own, maker, standing), &patience);
        assert_eq!(verdict, expected, "{standing:?} {maker:?} {patience:?}");
    }
}

#[test]
fn a_sandbox_without_run_or_creator_is_removed_after_an_hour() {
    for (age, expected) in [
        (None, PruneVerdict::Keep(KeepReason::MaybeInUse)),
        (Some(HOUR / 2), PruneVerdict::Keep(KeepReason::MaybeInUse)),
        (Some(HOUR), PruneVerdict::Remove(RemovalReason::Unowned)),
    ] {
        let known = PruneCandidate {
            age,
            ..candidate(
                StateDirOwner::Own,
                SandboxCreator::Unknown,
                SandboxRunStatus::NoRun,
            )
        };
        let verdict = decide(&known, &RetentionPolicy::for_run_start());
        assert_eq!(verdict, expected, "{age:?}");
    }
}

/// A workspace without a run directory may contain the last copy of uncommitted work, so only an
/// explicit request removes it. A request does not override an owner that may be alive.
#[test]
fn an_orphaned_workspace_is_removed_only_on_request() {
    use SandboxCreator::{Ended as Dead, MaybeAlive, Unfinished, Unknown};
    use StateDirOwner::{Missing, Own};
    let keep = |why| PruneVerdict::Keep(why);
    let remove = |why| PruneVerdict::Remove(why);
    for (owner, creator, kept, removed) in [
        (
            Own,
            Dead,
            keep(KeepReason::Orphaned),
            remove(RemovalReason::RunMissing),
        ),
        (
            Own,
            Unknown,
            keep(KeepReason::Orphaned),
            remove(RemovalReason::RunMissing),
        ),
        (
            Own,
            Unfinished,
            keep(KeepReason::Orphaned),
            remove(RemovalReason::RunMissing),
        ),
        (
            Own,
            MaybeAlive,
            keep(KeepReason::MaybeInUse),
            keep(KeepReason::MaybeInUse),
        ),
        (
            Missing,
            Dead,
            keep(KeepReason::StateDirOrphaned),
            remove(RemovalReason::StateDirMissing),
        ),
        (
            Missing,
            MaybeAlive,
            keep(KeepReason::MaybeInUse),
            keep(KeepReason::MaybeInUse),
        ),
    ] {
        let work = PruneCandidate {
            content: SandboxContent::Work,
            ..candidate(owner, creator, SandboxRunStatus::Missing)
        };
        for policy in [
            RetentionPolicy::for_run_start(),
            RetentionPolicy::for_command(Some(Duration::ZERO), OrphanPolicy::Keep),
        ] {
            assert_eq!(decide(&work, &policy), kept, "{owner:?} {creator:?}");
        }
        let policy = RetentionPolicy::for_command(None, OrphanPolicy::Remove);
        assert_eq!(decide(&work, &policy), removed, "{owner:?} {creator:?}");
    }
}

/// Creating a sandbox takes milliseconds, so one without a record is soon known to be abandoned.
#[test]
fn an_unfinished_sandbox_is_removed_after_a_minute() {
    let minute = Duration::from_mins(1);
    for (age, standing, expected) in [
        (
            Some(minute / 2),
            SandboxRunStatus::NoRun,
            PruneVerdict::Keep(KeepReason::MaybeInUse),
        ),
        (
            Some(minute),
            SandboxRunStatus::NoRun,
            PruneVerdict::Remove(RemovalReason::Unfinished),
        ),
        (
            None,
            SandboxRunStatus::NoRun,
            PruneVerdict::Remove(RemovalReason::Unfinished),
        ),
        (
            None,
            SandboxRunStatus::Missing,
            PruneVerdict::Remove(RemovalReason::RunMissing),
        ),
        (
            Some(minute),
            SandboxRunStatus::Held,
            PruneVerdict::Keep(KeepReason::Held),
        ),
    ] {
        let known = PruneCandidate {
            age,
            ..candidate(StateDirOwner::Own, SandboxCreator::Unfinished, standing)
        };
        let verdict = decide(&known, &RetentionPolicy::for_run_start());
        assert_eq!(verdict, expected, "{age:?} {standing:?}");
    }
}

/// A foreign sandbox is removed only if its state directory and its creator are gone, regardless of
/// other facts.
#[test]
fn foreign_sandboxes_are_kept() {
    let strict = RetentionPolicy::for_command(Some(Duration::ZERO), OrphanPolicy::Keep);
    for (maker, standing) in CREATORS
        .into_iter()
        .flat_map(|maker| RUN_STATUSES.map(|standing| (maker, standing)))
    {
        for home in STATE_DIR_OWNERS {
            let expected = match (home, maker) {
                (StateDirOwner::Own, _) => continue,
                (StateDirOwner::Foreign, _) => PruneVerdict::Keep(KeepReason::Foreign),
                (StateDirOwner::Unknown, _) => PruneVerdict::Keep(KeepReason::UnknownOwner),
                (StateDirOwner::Missing, SandboxCreator::Ended) => {
                    PruneVerdict::Remove(RemovalReason::StateDirMissing)
                }
                (StateDirOwner::Missing, _) => PruneVerdict::Keep(KeepReason::MaybeInUse),
            };
            let verdict = decide(&candidate(home, maker, standing), &strict);
            assert_eq!(verdict, expected, "{home:?} {maker:?} {standing:?}");
        }
    }
}

/// Even the shortest retention does not remove a sandbox in which a process works.
#[test]
fn a_live_run_keeps_its_sandbox() {
    let patiences = [
        RetentionPolicy::for_command(None, OrphanPolicy::Keep),
        RetentionPolicy::for_command(Some(Duration::ZERO), OrphanPolicy::Keep),
        RetentionPolicy::for_run_start(),
    ];
    for patience in patiences {
        for (home, maker) in STATE_DIR_OWNERS
            .into_iter()
            .flat_map(|home| CREATORS.map(|maker| (home, maker)))
            .filter(|place| *place != (StateDirOwner::Missing, SandboxCreator::Ended))
        {
            let verdict = decide(&candidate(home, maker, SandboxRunStatus::Held), &patience);
            assert!(
                matches!(verdict, PruneVerdict::Keep(_)),
                "{home:?} {maker:?}"
            );
        }
    }
}

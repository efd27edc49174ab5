//! Decides which sandboxes are stale. Nothing is looked at here: what is known comes in.

use std::fmt;
use std::time::Duration;

/// How old a sandbox without a run must be, where it is not told who made it. What makes such
/// sandboxes takes minutes.
const UNOWNED_MIN_AGE: Duration = Duration::from_hours(1);
/// How old a sandbox must be that has no record yet. Creating one takes milliseconds.
const UNFINISHED_MIN_AGE: Duration = Duration::from_mins(1);

/// Whose state directory a sandbox belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateDirOwner {
    /// Ours.
    Own,
    /// Another one, which is there.
    Foreign,
    /// Another one, which is not there.
    Missing,
    /// It is not told, or in a way that cannot be relied on.
    Unknown,
}

/// What is known about the process that made a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SandboxCreator {
    /// It has ended.
    Ended,
    /// It lives, or it is of another machine, of which nothing is known.
    MaybeAlive,
    /// It is not told. The sandbox is on this machine, where runs are held by locks.
    Unknown,
    /// It has not finished the sandbox: there is no record beside the directory.
    Unfinished,
}

/// How the run of a sandbox stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SandboxRunStatus {
    /// It has no run.
    NoRun,
    /// Its run is gone.
    Missing,
    /// A process works on it.
    Held,
    /// Its journal cannot be read.
    Unreadable,
    /// It has ended, this long ago.
    Ended(Duration),
    /// It can be resumed, and nothing was recorded for this long.
    Resumable(Duration),
    /// It can be resumed, and will not use this sandbox.
    ResumableElsewhere,
}

/// What is known about a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PruneCandidate {
    pub(super) state_dir_owner: StateDirOwner,
    pub(super) creator: SandboxCreator,
    pub(super) run_status: SandboxRunStatus,
    /// How long it has been there, where that is told.
    pub(super) age: Option<Duration>,
}

/// How long sandboxes are kept that somebody may still want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetentionPolicy {
    /// Those of runs that have ended, for a look.
    pub(super) ended_runs: Duration,
    /// Those of runs that can be resumed; none means for ever.
    pub(super) resumable_runs: Option<Duration>,
}

impl RetentionPolicy {
    /// Of a person who says that it is enough.
    pub(super) fn for_command(max_age: Option<Duration>) -> Self {
        Self {
            ended_runs: Duration::ZERO,
            resumable_runs: max_age,
        }
    }

    /// Of a run that tidies up before it starts.
    pub(super) fn for_run_start() -> Self {
        Self {
            ended_runs: Duration::from_hours(24),
            resumable_runs: None,
        }
    }
}

/// What is to be done with a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PruneVerdict {
    /// It stays.
    Keep(KeepReason),
    /// It is removed.
    Remove(RemovalReason),
}

/// Why a sandbox stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepReason {
    /// It is none of our business.
    Foreign,
    /// Nobody can tell whose it is.
    UnknownOwner,
    /// Who made it may still use it.
    MaybeInUse,
    /// A process works in it.
    Held,
    /// Its run cannot be asked.
    Unreadable,
    /// Somebody may want to look at it.
    ForInspection,
    /// Its run goes on in it.
    Resumable,
}

/// Why a sandbox is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemovalReason {
    /// Its state directory is gone.
    StateDirMissing,
    /// It has no run, and nobody uses it.
    Unowned,
    /// The process that created it was killed in the middle.
    Unfinished,
    /// Its run is gone.
    RunMissing,
    /// Its run has ended.
    RunEnded,
    /// Its run goes on without it.
    Unused,
    /// Its run was not resumed for too long.
    Expired,
}

/// Decides what is to be done with a sandbox.
pub(super) fn decide(known: &PruneCandidate, patience: &RetentionPolicy) -> PruneVerdict {
    match known.state_dir_owner {
        StateDirOwner::Own => decide_own(known, patience),
        StateDirOwner::Foreign => PruneVerdict::Keep(KeepReason::Foreign),
        StateDirOwner::Unknown => PruneVerdict::Keep(KeepReason::UnknownOwner),
        // A directory of another machine is never here.
        StateDirOwner::Missing => match known.creator {
            SandboxCreator::Ended => PruneVerdict::Remove(RemovalReason::StateDirMissing),
            SandboxCreator::MaybeAlive | SandboxCreator::Unknown | SandboxCreator::Unfinished => {
                PruneVerdict::Keep(KeepReason::MaybeInUse)
            }
        },
    }
}

fn decide_own(known: &PruneCandidate, patience: &RetentionPolicy) -> PruneVerdict {
    let old = known.age.is_some_and(|age| age >= UNOWNED_MIN_AGE);
    match (known.run_status, known.creator) {
        (SandboxRunStatus::Held, _) => PruneVerdict::Keep(KeepReason::Held),
        (SandboxRunStatus::Unreadable, _) => PruneVerdict::Keep(KeepReason::Unreadable),
        // Two machines may have directories of the same name, and one engine for both.
        (SandboxRunStatus::Missing | SandboxRunStatus::NoRun, SandboxCreator::MaybeAlive) => {
            PruneVerdict::Keep(KeepReason::MaybeInUse)
        }
        (
            SandboxRunStatus::Missing,
            SandboxCreator::Ended | SandboxCreator::Unknown | SandboxCreator::Unfinished,
        ) => PruneVerdict::Remove(RemovalReason::RunMissing),
        (SandboxRunStatus::NoRun, SandboxCreator::Unknown) if !old => {
            PruneVerdict::Keep(KeepReason::MaybeInUse)
        }
        (SandboxRunStatus::NoRun, SandboxCreator::Unfinished)
            if known.age.is_some_and(|age| age < UNFINISHED_MIN_AGE) =>
        {
            PruneVerdict::Keep(KeepReason::MaybeInUse)
        }
        (SandboxRunStatus::NoRun, SandboxCreator::Unfinished) => {
            PruneVerdict::Remove(RemovalReason::Unfinished)
        }
        (SandboxRunStatus::NoRun, SandboxCreator::Ended | SandboxCreator::Unknown) => {
            PruneVerdict::Remove(RemovalReason::Unowned)
        }
        (SandboxRunStatus::Ended(ago), _) if ago < patience.ended_runs => {
            PruneVerdict::Keep(KeepReason::ForInspection)
        }
        (SandboxRunStatus::Ended(_), _) => PruneVerdict::Remove(RemovalReason::RunEnded),
        (SandboxRunStatus::ResumableElsewhere, _) => PruneVerdict::Remove(RemovalReason::Unused),
        (SandboxRunStatus::Resumable(idle), _)
            if patience.resumable_runs.is_some_and(|most| idle >= most) =>
        {
            PruneVerdict::Remove(RemovalReason::Expired)
        }
        (SandboxRunStatus::Resumable(_), _) => PruneVerdict::Keep(KeepReason::Resumable),
    }
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "it belongs to another state directory",
            Self::UnknownOwner => "it does not tell which state directory it belongs to",
            Self::MaybeInUse => "the process that made it may still use it",
            Self::Held => "a process works on its run",
            Self::Unreadable => "the journal of its run cannot be read",
            Self::ForInspection => "its run has ended, it is kept for a look",
            Self::Resumable => "its run can be resumed",
        })
    }
}

impl fmt::Display for RemovalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StateDirMissing => "its state directory no longer exists",
            Self::Unowned => "it belongs to no run, and nobody uses it",
            Self::Unfinished => "the process that created it was killed before it was ready",
            Self::RunMissing => "its run no longer exists",
            Self::RunEnded => "its run has ended",
            Self::Unused => "its run goes on without it",
            Self::Expired => "its run was not resumed for too long",
        })
    }
}

#[cfg(test)]
mod tests;

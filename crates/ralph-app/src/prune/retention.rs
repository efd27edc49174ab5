//! Decides from given facts which sandboxes are stale.

use std::fmt;
use std::time::Duration;

/// The minimum age of a sandbox without a run and without a known creator. The operations that
/// create such sandboxes take minutes.
const UNOWNED_MIN_AGE: Duration = Duration::from_hours(1);
/// The minimum age of a sandbox without a record. Creating one takes milliseconds.
const UNFINISHED_MIN_AGE: Duration = Duration::from_mins(1);

/// The state directory that a sandbox belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateDirOwner {
    /// This state directory.
    Own,
    /// Another existing state directory.
    Foreign,
    /// Another state directory, which does not exist.
    Missing,
    /// An unknown state directory, or an unreliable label.
    Unknown,
}

/// The state of the process that created a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SandboxCreator {
    /// The process has ended.
    Ended,
    /// The process is alive, or belongs to another machine.
    MaybeAlive,
    /// The process is unknown. The sandbox is on this machine, which protects runs with locks.
    Unknown,
    /// The process has not finished the sandbox: there is no record next to the directory.
    Unfinished,
}

/// The status of a sandbox's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SandboxRunStatus {
    /// The sandbox has no run.
    NoRun,
    /// The run's directory no longer exists.
    Missing,
    /// A process works on the run.
    Held,
    /// The journal of the run cannot be read.
    Unreadable,
    /// The run has ended, this long ago.
    Ended(Duration),
    /// The run can be resumed; its last record is this old.
    Resumable(Duration),
    /// The run can be resumed, but will not use this sandbox.
    ResumableElsewhere,
}

/// Whether a sandbox may contain work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SandboxContent {
    /// The workspace of a run, possibly with the last copy of its work.
    Work,
    /// A clean room, a selftest or an unlabeled sandbox: no work of a run.
    NoWork,
}

/// The known facts about a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PruneCandidate {
    pub(super) state_dir_owner: StateDirOwner,
    pub(super) creator: SandboxCreator,
    pub(super) run_status: SandboxRunStatus,
    pub(super) content: SandboxContent,
    pub(super) age: Option<Duration>,
}

/// The treatment of workspaces whose run has no directory any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanPolicy {
    /// They are retained: they may contain the last copy of a run's work.
    Keep,
    /// The user asked for their removal.
    Remove,
}

/// How long potentially useful sandboxes are retained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetentionPolicy {
    /// The time for sandboxes of ended runs, for inspection.
    pub(super) ended_runs: Duration,
    /// The time for sandboxes of resumable runs; `None` means forever.
    pub(super) resumable_runs: Option<Duration>,
    pub(super) orphans: OrphanPolicy,
}

impl RetentionPolicy {
    /// Returns the policy for an explicit command.
    pub(super) fn for_command(max_age: Option<Duration>, orphans: OrphanPolicy) -> Self {
        Self {
            ended_runs: Duration::ZERO,
            resumable_runs: max_age,
            orphans,
        }
    }

    /// Returns the policy for cleaning up before a run.
    pub(super) fn for_run_start() -> Self {
        Self {
            ended_runs: Duration::from_hours(24),
            resumable_runs: None,
            orphans: OrphanPolicy::Keep,
        }
    }
}

/// The decision about a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PruneVerdict {
    /// The sandbox is retained.
    Keep(KeepReason),
    /// The sandbox is removed.
    Remove(RemovalReason),
}

/// The reason for retaining a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepReason {
    /// The sandbox belongs to another state directory.
    Foreign,
    /// The owner of the sandbox is unknown.
    UnknownOwner,
    /// The creator may still use the sandbox.
    MaybeInUse,
    /// A process works on the run of the sandbox.
    Held,
    /// The run of the sandbox cannot be read.
    Unreadable,
    /// The user may want to inspect the sandbox.
    ForInspection,
    /// The run can continue in the sandbox.
    Resumable,
    /// The directory of the run is gone; the sandbox may contain the last copy of its work.
    Orphaned,
    /// The state directory is gone; the sandbox may contain the last copy of a run's work.
    StateDirOrphaned,
}

impl KeepReason {
    /// Returns whether only an explicit request removes the sandbox.
    pub(super) fn is_orphaned(self) -> bool {
        match self {
            Self::Orphaned | Self::StateDirOrphaned => true,
            Self::Foreign
            | Self::UnknownOwner
            | Self::MaybeInUse
            | Self::Held
            | Self::Unreadable
            | Self::ForInspection
            | Self::Resumable => false,
        }
    }
}

/// The reason for removing a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemovalReason {
    /// The state directory no longer exists.
    StateDirMissing,
    /// The sandbox has no run and no user.
    Unowned,
    /// The process was killed while it created the sandbox.
    Unfinished,
    /// The run no longer exists.
    RunMissing,
    /// The run has ended.
    RunEnded,
    /// The run continues without the sandbox.
    Unused,
    /// The run was not resumed for too long.
    Expired,
}

/// Decides whether a sandbox is removed.
pub(super) fn decide(candidate: &PruneCandidate, policy: &RetentionPolicy) -> PruneVerdict {
    match candidate.state_dir_owner {
        StateDirOwner::Own => decide_own(candidate, policy),
        StateDirOwner::Foreign => PruneVerdict::Keep(KeepReason::Foreign),
        StateDirOwner::Unknown => PruneVerdict::Keep(KeepReason::UnknownOwner),
        // A directory of another machine never exists here.
        StateDirOwner::Missing => match candidate.creator {
            SandboxCreator::Ended if is_protected(candidate, policy) => {
                PruneVerdict::Keep(KeepReason::StateDirOrphaned)
            }
            SandboxCreator::Ended => PruneVerdict::Remove(RemovalReason::StateDirMissing),
            SandboxCreator::MaybeAlive | SandboxCreator::Unknown | SandboxCreator::Unfinished => {
                PruneVerdict::Keep(KeepReason::MaybeInUse)
            }
        },
    }
}

/// Returns whether a sandbox without a run directory may contain work that must not get lost.
fn is_protected(candidate: &PruneCandidate, policy: &RetentionPolicy) -> bool {
    candidate.content == SandboxContent::Work && policy.orphans == OrphanPolicy::Keep
}

fn decide_own(candidate: &PruneCandidate, policy: &RetentionPolicy) -> PruneVerdict {
    let old = candidate.age.is_some_and(|age| age >= UNOWNED_MIN_AGE);
    match (candidate.run_status, candidate.creator) {
        (SandboxRunStatus::Held, _) => PruneVerdict::Keep(KeepReason::Held),
        (SandboxRunStatus::Unreadable, _) => PruneVerdict::Keep(KeepReason::Unreadable),
        // Two machines may have directories of the same name and share one engine.
        (SandboxRunStatus::Missing | SandboxRunStatus::NoRun, SandboxCreator::MaybeAlive) => {
            PruneVerdict::Keep(KeepReason::MaybeInUse)
        }
        (SandboxRunStatus::Missing, _) if is_protected(candidate, policy) => {
            PruneVerdict::Keep(KeepReason::Orphaned)
        }
        (
            SandboxRunStatus::Missing,
            SandboxCreator::Ended | SandboxCreator::Unknown | SandboxCreator::Unfinished,
        ) => PruneVerdict::Remove(RemovalReason::RunMissing),
        (SandboxRunStatus::NoRun, SandboxCreator::Unknown) if !old => {
            PruneVerdict::Keep(KeepReason::MaybeInUse)
        }
        (SandboxRunStatus::NoRun, SandboxCreator::Unfinished)
            if candidate.age.is_some_and(|age| age < UNFINISHED_MIN_AGE) =>
        {
            PruneVerdict::Keep(KeepReason::MaybeInUse)
        }
        (SandboxRunStatus::NoRun, SandboxCreator::Unfinished) => {
            PruneVerdict::Remove(RemovalReason::Unfinished)
        }
        (SandboxRunStatus::NoRun, SandboxCreator::Ended | SandboxCreator::Unknown) => {
            PruneVerdict::Remove(RemovalReason::Unowned)
        }
        (SandboxRunStatus::Ended(ago), _) if ago < policy.ended_runs => {
            PruneVerdict::Keep(KeepReason::ForInspection)
        }
        (SandboxRunStatus::Ended(_), _) => PruneVerdict::Remove(RemovalReason::RunEnded),
        (SandboxRunStatus::ResumableElsewhere, _) => PruneVerdict::Remove(RemovalReason::Unused),
        (SandboxRunStatus::Resumable(idle), _)
            if policy
                .resumable_runs
                .is_some_and(|max_idle| idle >= max_idle) =>
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
            Self::UnknownOwner => "its state directory is unknown",
            Self::MaybeInUse => "the process that created it may still use it",
            Self::Held => "a process works on its run",
            Self::Unreadable => "the journal of its run cannot be read",
            Self::ForInspection => "its run has ended, and it is kept for inspection",
            Self::Resumable => "its run can be resumed",
            Self::Orphaned => {
                "the directory of its run is gone, and it may contain the last copy of the work"
            }
            Self::StateDirOrphaned => {
                "its state directory is gone, and it may contain the last copy of a run's work"
            }
        })
    }
}

impl fmt::Display for RemovalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StateDirMissing => "its state directory no longer exists",
            Self::Unowned => "it belongs to no run, and no process uses it",
            Self::Unfinished => "the process that created it was killed before it was ready",
            Self::RunMissing => "its run no longer exists",
            Self::RunEnded => "its run has ended",
            Self::Unused => "its run continues without it",
            Self::Expired => "its run has not been resumed for too long",
        })
    }
}

#[cfg(test)]
mod tests;

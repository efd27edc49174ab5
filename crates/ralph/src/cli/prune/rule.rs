//! Decides which sandboxes are stale. Nothing is looked at here: what is known comes in.

use std::fmt;
use std::time::Duration;

/// How old a sandbox without a run must be, where it is not told who made it. What makes such
/// sandboxes takes minutes.
const NOBODYS: Duration = Duration::from_hours(1);
/// How old a sandbox must be that has no record yet. Creating one takes milliseconds.
const UNFINISHED: Duration = Duration::from_mins(1);

/// Whose state directory a sandbox belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// Ours.
    Ours,
    /// Another one, which is there.
    Another,
    /// Another one, which is not there.
    Missing,
    /// It is not told, or in a way that cannot be relied on.
    Untold,
}

/// What is known about the process that made a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// It has ended.
    Ended,
    /// It lives, or it is of another machine, of which nothing is known.
    MayLive,
    /// It is not told. The sandbox is on this machine, where runs are held by locks.
    Untold,
    /// It has not finished the sandbox: there is no record beside the directory.
    Unfinished,
}

/// How the run of a sandbox stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has no run.
    NoRun,
    /// Its run is gone.
    Gone,
    /// A process works on it.
    Held,
    /// Its journal cannot be read.
    Unreadable,
    /// It has ended, this long ago.
    Ended(Duration),
    /// It can be resumed, and nothing was recorded for this long.
    Waiting(Duration),
    /// It can be resumed, and will not use this sandbox.
    WaitingElsewhere,
}

/// What is known about a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) home: Home,
    pub(super) maker: Maker,
    pub(super) standing: Standing,
    /// How long it has been there, where that is told.
    pub(super) age: Option<Duration>,
}

/// How long sandboxes are kept that somebody may still want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// Those of runs that have ended, for a look.
    pub(super) look: Duration,
    /// Those of runs that can be resumed; none means for ever.
    pub(super) resume: Option<Duration>,
}

impl Patience {
    /// Of a person who says that it is enough.
    pub(super) fn of_a_person(max_age: Option<Duration>) -> Self {
        Self {
            look: Duration::ZERO,
            resume: max_age,
        }
    }

    /// Of a run that tidies up before it starts.
    pub(super) fn of_a_run() -> Self {
        Self {
            look: Duration::from_hours(24),
            resume: None,
        }
    }
}

/// What is to be done with a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays.
    Keep(Kept),
    /// It is removed.
    Remove(Stale),
}

/// Why a sandbox stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is none of our business.
    Another,
    /// Nobody can tell whose it is.
    Untold,
    /// Who made it may still use it.
    MayBeUsed,
    /// A process works in it.
    Held,
    /// Its run cannot be asked.
    Unreadable,
    /// Somebody may want to look at it.
    ForALook,
    /// Its run goes on in it.
    Resumable,
}

/// Why a sandbox is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stale {
    /// Its state directory is gone.
    Homeless,
    /// It has no run, and nobody uses it.
    Nobodys,
    /// The process that created it was killed in the middle.
    Unfinished,
    /// Its run is gone.
    Gone,
    /// Its run has ended.
    Ended,
    /// Its run goes on without it.
    Unused,
    /// Its run was not resumed for too long.
    Old,
}

/// Decides what is to be done with a sandbox.
pub(super) fn judge(known: &Known, patience: &Patience) -> Verdict {
    match known.home {
        Home::Ours => judge_ours(known, patience),
        Home::Another => Verdict::Keep(Kept::Another),
        Home::Untold => Verdict::Keep(Kept::Untold),
        // A directory of another machine is never here.
        Home::Missing => match known.maker {
            Maker::Ended => Verdict::Remove(Stale::Homeless),
            Maker::MayLive | Maker::Untold | Maker::Unfinished => Verdict::Keep(Kept::MayBeUsed),
        },
    }
}

fn judge_ours(known: &Known, patience: &Patience) -> Verdict {
    let old = known.age.is_some_and(|age| age >= NOBODYS);
    match (known.standing, known.maker) {
        (Standing::Held, _) => Verdict::Keep(Kept::Held),
        (Standing::Unreadable, _) => Verdict::Keep(Kept::Unreadable),
        // Two machines may have directories of the same name, and one engine for both.
        (Standing::Gone | Standing::NoRun, Maker::MayLive) => Verdict::Keep(Kept::MayBeUsed),
        (Standing::Gone, Maker::Ended | Maker::Untold | Maker::Unfinished) => {
            Verdict::Remove(Stale::Gone)
        }
        (Standing::NoRun, Maker::Untold) if !old => Verdict::Keep(Kept::MayBeUsed),
        (Standing::NoRun, Maker::Unfinished) if known.age.is_some_and(|age| age < UNFINISHED) => {
            Verdict::Keep(Kept::MayBeUsed)
        }
        (Standing::NoRun, Maker::Unfinished) => Verdict::Remove(Stale::Unfinished),
        (Standing::NoRun, Maker::Ended | Maker::Untold) => Verdict::Remove(Stale::Nobodys),
        (Standing::Ended(ago), _) if ago < patience.look => Verdict::Keep(Kept::ForALook),
        (Standing::Ended(_), _) => Verdict::Remove(Stale::Ended),
        (Standing::WaitingElsewhere, _) => Verdict::Remove(Stale::Unused),
        (Standing::Waiting(idle), _) if patience.resume.is_some_and(|most| idle >= most) => {
            Verdict::Remove(Stale::Old)
        }
        (Standing::Waiting(_), _) => Verdict::Keep(Kept::Resumable),
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Another => "it belongs to another state directory",
            Self::Untold => "it does not tell which state directory it belongs to",
            Self::MayBeUsed => "the process that made it may still use it",
            Self::Held => "a process works on its run",
            Self::Unreadable => "the journal of its run cannot be read",
            Self::ForALook => "its run has ended, it is kept for a look",
            Self::Resumable => "its run can be resumed",
        })
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Homeless => "its state directory no longer exists",
            Self::Nobodys => "it belongs to no run, and nobody uses it",
            Self::Unfinished => "the process that created it was killed before it was ready",
            Self::Gone => "its run no longer exists",
            Self::Ended => "its run has ended",
            Self::Unused => "its run goes on without it",
            Self::Old => "its run was not resumed for too long",
        })
    }
}

#[cfg(test)]
mod tests;

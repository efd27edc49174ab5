//! Goes through the sandboxes of a provider and removes what is stale.

use ralph_core::ports::{Problem, SandboxId};

use super::keeper::{Keeper, Seen};
use super::rule::{self, Kept, Known, Patience, Stale, Standing, Verdict};
use super::standing;
use crate::wire::Wiring;

/// Whether anything is really removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is.
    Remove,
    /// It is only told.
    Tell,
}

/// One sandbox, and what became of it.
#[derive(Debug)]
pub(super) struct Swept {
    pub(super) provider: &'static str,
    pub(super) id: SandboxId,
    pub(super) run: Option<String>,
    pub(super) fate: Fate,
}

/// What became of a sandbox.
#[derive(Debug)]
pub(super) enum Fate {
    Kept(Kept),
    Removed(Stale),
    /// It is stale and still there.
    Stuck(Stale, Problem),
}

/// Goes through all sandboxes of a provider.
pub(super) async fn sweep(
    keeper: &Keeper,
    patience: &Patience,
    mode: Mode,
    wiring: &Wiring,
) -> Result<Vec<Swept>, Problem> {
    let mut swept = Vec::new();
    for seen in keeper.survey(wiring).await? {
        swept.push(Swept {
            provider: keeper.name(),
            id: seen.id.clone(),
            run: seen.labels.get("run").cloned(),
            fate: decide(&seen, keeper, patience, mode, wiring).await,
        });
    }
    Ok(swept)
}

async fn decide(
    seen: &Seen,
    keeper: &Keeper,
    patience: &Patience,
    mode: Mode,
    wiring: &Wiring,
) -> Fate {
    let judge = |standing: Standing| {
        let known = Known {
            home: seen.home,
            maker: seen.maker,
            standing,
            age: seen.age,
        };
        rule::judge(&known, patience)
    };
    let stale = match judge(standing::look(seen, wiring)) {
        Verdict::Keep(why) => return Fate::Kept(why),
        Verdict::Remove(why) => why,
    };
    if mode == Mode::Tell {
        return Fate::Removed(stale);
    }
    // Somebody may have taken the run up since; as long as it is held here, nobody can.
    let (standing, _lock) = standing::hold(seen, wiring);
    match judge(standing) {
        Verdict::Keep(why) => Fate::Kept(why),
        Verdict::Remove(why) => match keeper.remove(&seen.id).await {
            Ok(()) => Fate::Removed(why),
            Err(problem) => Fate::Stuck(why, problem),
        },
    }
}

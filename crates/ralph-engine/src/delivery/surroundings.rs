//! Compares a run with its surroundings at the source host: other open pull requests that change the
//! same files, a base branch that moved, a base branch whose pull request was merged or closed.
//!
//! A run never fails because of its surroundings: if the host does not answer, the next look is later.

use std::collections::BTreeSet;
use std::time::Duration;

use ralph_core::event::DeliveryEvent;
use ralph_core::id::CommitId;
use ralph_core::plan::Delivery;
use ralph_core::ports::{OpenPull, PullRequest, Scm, ScmError};
use ralph_core::publish::OverlapAction;
use ralph_core::publish::overlap::{PullOverlap, RunBranches, find_overlaps};
use ralph_core::run::PauseReason;

use super::host_request::policy;
use crate::attend::attend;
use crate::error::RunError;
use crate::run::Run;
use crate::steps::elapsed;

/// How often a working run looks at its surroundings.
const INTERVAL: Duration = Duration::from_mins(10);
/// The most overlaps that a run records.
const MAX_OVERLAPS: usize = 20;

/// The last look of this process at the surroundings of a run.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    looked_at: Option<Duration>,
    default_branch: Option<String>,
    /// The pause for a new overlap.
    pause: Option<PauseReason>,
    /// The highest id of a review that was ignored.
    pub(super) last_ignored_review: u64,
}

impl Surroundings {
    /// Returns the pause for an overlap that was found since the last call.
    pub(super) fn take_pause(&mut self) -> Option<PauseReason> {
        self.pause.take()
    }
}

/// The occasion of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookOccasion {
    /// The pull request is about to be updated.
    Publish,
    /// The run works or waits.
    Regular,
}

/// The state of the host that matters to a run.
struct HostSurroundings {
    pulls: Vec<OpenPull>,
    base_head: Option<CommitId>,
    default_branch: String,
    /// The last pull request of the base branch, if the run is stacked on it.
    base_pull: Option<PullRequest>,
}

/// Looks at the surroundings before each update of the pull request, and otherwise if the last look was long enough
/// ago. Records the changes.
pub(super) async fn inspect_surroundings(
    run: &mut Run,
    occasion: LookOccasion,
) -> Result<(), RunError> {
    let state = run.recorder.state();
    let (base_branch, default_branch) = (
        state.plan.base_branch.clone(),
        run.surroundings.default_branch.clone(),
    );
    let scm = run.services.scm.clone();
    let has_pull_request = state.plan.delivery == Delivery::PullRequest;
    if scm.source_host().is_none() || !has_pull_request || state.head == state.plan.base {
        return Ok(());
    }
    let now = elapsed(&run.recorder);
    let last = run.surroundings.looked_at;
    let is_recent = last.is_some_and(|last| now.saturating_sub(last) < INTERVAL);
    if occasion == LookOccasion::Regular && is_recent {
        return Ok(());
    }
    run.surroundings.looked_at = Some(now);
    let reading = read_surroundings(&*scm, &base_branch, default_branch);
    match attend(&mut run.recorder.journal, &mut run.controls, reading).await? {
        Ok(Some(found)) => {
            run.surroundings.default_branch = Some(found.default_branch.clone());
            record_overlaps(run, &found.pulls).await?;
            record_base(run, &base_branch, found)
        }
        Ok(None) => Ok(()),
        Err(error) => run.recorder.log_activity(&format!(
            "the other pull requests cannot be read, so overlaps are not known: {error}"
        )),
    }
}

async fn read_surroundings(
    scm: &dyn Scm,
    base: &str,
    default_branch: Option<String>,
) -> Result<Option<HostSurroundings>, ScmError> {
    let Some(host) = scm.source_host() else {
        return Ok(None);
    };
    let default_branch = match default_branch {
        Some(name) => name,
        None => host.repository().await?.default_branch,
    };
    let base_pull = if base == default_branch {
        None
    } else {
        host.last_pull_of(base).await?
    };
    Ok(Some(HostSurroundings {
        pulls: host.open_pulls().await?,
        base_head: host.branch(base).await?.map(|branch| branch.head),
        default_branch,
        base_pull,
    }))
}

/// Records new, changed and ended overlaps.
async fn record_overlaps(run: &mut Run, pulls: &[OpenPull]) -> Result<(), RunError> {
    let state = run.recorder.state();
    let changed = run.bench.repo.changed_paths(&state.plan.base, &state.head);
    let changed: BTreeSet<String> = changed.await?.into_iter().map(|file| file.path).collect();
    let branches = RunBranches {
        head: &state.plan.branch,
        base: &state.plan.base_branch,
    };
    let mut found = find_overlaps(&changed, branches, pulls);
    found.truncate(MAX_OVERLAPS);
    let known = state.host.overlaps.clone();
    let pauses = policy(run).overlap == OverlapAction::Pause;
    for overlap in &found {
        if !overlap.is_news(known.get(&overlap.number)) {
            continue;
        }
        run.recorder
            .log_activity(&format!("overlap: {}", describe_overlap(overlap)))?;
        if pauses {
            run.surroundings.pause = Some(overlap_pause(overlap));
        }
        let overlap = overlap.clone();
        run.recorder
            .append(DeliveryEvent::OverlapFound { overlap, pauses })?;
    }
    let ended = known.into_keys();
    for number in ended.filter(|number| !found.iter().any(|overlap| overlap.number == *number)) {
        run.recorder
            .append(DeliveryEvent::OverlapEnded { number })?;
    }
    Ok(())
}

/// Describes an overlap in one line.
pub(super) fn describe_overlap(overlap: &PullOverlap) -> String {
    let PullOverlap {
        number,
        files,
        shared,
        ..
    } = overlap;
    let part = overlap.shared_part();
    let more = match shared.saturating_sub(files.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "pull request {number} changes {part} of this branch: `{}`{more}",
        files.join("`, `")
    )
}

fn overlap_pause(overlap: &PullOverlap) -> PauseReason {
    PauseReason::Broken {
        what: describe_overlap(overlap),
        fix: format!(
            "agree with its author at {}, then `ralph resume`, which accepts this overlap",
            overlap.url
        ),
    }
}

/// Records that the base branch moved, and that its pull request was merged or closed, each once.
fn record_base(run: &mut Run, branch: &str, found: HostSurroundings) -> Result<(), RunError> {
    let state = run.recorder.state();
    let moved = found
        .base_head
        .filter(|head| *head != state.plan.base && state.host.base_moved.is_none());
    let known = state.host.closed_base.as_ref().map(|closed| closed.number);
    let closed = found
        .base_pull
        .filter(|pull| pull.state.is_closed() && known != Some(pull.number));
    let branch = branch.to_owned();
    if let Some(head) = moved {
        run.recorder.log_activity(&format!(
            "the base branch `{branch}` is at {} at the source host",
            head.short()
        ))?;
        let branch = branch.clone();
        run.recorder
            .append(DeliveryEvent::BaseMoved { branch, head })?;
    }
    if let Some(pull) = closed {
        let PullRequest {
            number, url, state, ..
        } = pull;
        run.recorder.append(DeliveryEvent::BasePullClosed {
            branch,
            number,
            url,
            state,
        })?;
    }
    Ok(())
}

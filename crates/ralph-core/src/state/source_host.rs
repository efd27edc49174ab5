//! The findings at the source host.

use std::collections::BTreeMap;

use super::RunState;
use crate::event::DeliveryEvent;
use crate::id::{CommitId, Digest};
use crate::ports::PullState;
use crate::publish::ci::{CiCounts, CiDecision, CiOutcome};
use crate::publish::overlap::PullOverlap;
use crate::verdict::CheckResult;

/// A green verification.
#[derive(Debug, Clone, PartialEq)]
pub struct GreenVerification {
    pub head: CommitId,
    pub contract: Digest,
    pub checks: Vec<CheckResult>,
}

/// The last result of the checks at the source host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiResult {
    pub commit: CommitId,
    pub outcome: CiOutcome,
    pub failed: Vec<String>,
    pub counts: CiCounts,
    pub decision: CiDecision,
}

/// The pull request of the base branch, after it was merged or closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedBasePull {
    pub number: u64,
    pub url: String,
    pub state: PullState,
}

/// The facts that a run learned from its source host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFindings {
    /// The rounds in which the checks failed, since the user was last asked.
    pub failed_rounds: u32,
    pub ci: Option<CiResult>,
    /// The states of the checks of a commit in the last report.
    pub progress: Option<(CommitId, CiCounts)>,
    /// The pull requests that change files of the run, by number.
    pub overlaps: BTreeMap<u64, PullOverlap>,
    /// The highest id of a review that was given to the model.
    pub last_review: u64,
    /// The commit of the base branch, if the branch moved.
    pub base_moved: Option<CommitId>,
    pub closed_base: Option<ClosedBasePull>,
    /// The commit whose checks the run last waited for.
    pub waited_for: Option<CommitId>,
    /// Whether the run paused for the user instead of its success.
    pub awaits_user: bool,
}

impl RunState {
    /// Returns the green verification of the current commit against the contract in force.
    pub fn green_head(&self) -> Option<&GreenVerification> {
        let green = self.green.as_ref()?;
        (green.head == self.head && green.contract == self.contract).then_some(green)
    }

    pub(super) fn apply_host_finding(&mut self, event: &DeliveryEvent) {
        let host = &mut self.host;
        match event {
            DeliveryEvent::CiProgress { commit, counts } => {
                host.progress = Some((commit.clone(), *counts));
            }
            DeliveryEvent::CiFinished {
                commit,
                outcome,
                failed,
                counts,
                decision,
                ..
            } => {
                match decision {
                    CiDecision::Success => host.awaits_user = false,
                    CiDecision::Retry => host.failed_rounds += 1,
                    // The user may have repaired the cause, so the rounds start again.
                    CiDecision::Pause => {
                        host.failed_rounds = 0;
                        host.awaits_user = true;
                    }
                }
                host.ci = Some(CiResult {
                    commit: commit.clone(),
                    outcome: *outcome,
                    failed: failed.clone(),
                    counts: *counts,
                    decision: *decision,
                });
            }
            DeliveryEvent::OverlapFound { overlap, pauses } => {
                host.awaits_user |= pauses;
                host.overlaps.insert(overlap.number, overlap.clone());
            }
            DeliveryEvent::OverlapEnded { number } => drop(host.overlaps.remove(number)),
            DeliveryEvent::ReviewsReceived { last, .. } => host.last_review = *last,
            DeliveryEvent::BaseMoved { head, .. } => host.base_moved = Some(head.clone()),
            DeliveryEvent::BasePullClosed {
                number, url, state, ..
            } => {
                host.closed_base = Some(ClosedBasePull {
                    number: *number,
                    url: url.clone(),
                    state: *state,
                });
            }
            DeliveryEvent::CommitsImported { .. }
            | DeliveryEvent::ImportRefused { .. }
            | DeliveryEvent::PushStarted { .. }
            | DeliveryEvent::Pushed { .. }
            | DeliveryEvent::PullRequestStarted { .. }
            | DeliveryEvent::PullRequestUpdated { .. }
            | DeliveryEvent::StateSaved { .. }
            | DeliveryEvent::Discarded { .. } => {}
        }
    }
}

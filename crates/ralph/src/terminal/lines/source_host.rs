//! Checks, reviews, and the other pull requests at the source host.

use ralph_core::event::DeliveryEvent;
use ralph_core::ports::PullState;
use ralph_core::publish::ci::{CiDecision, CiOutcome};
use ralph_core::publish::overlap::PullOverlap;
use ralph_core::state::RunState;

use super::pieces::{BAD, GOOD, marked_line, quiet_line, warning_line};
use crate::terminal::styled_line::{StyledLine, Tone};

pub(super) fn event_lines(event: &DeliveryEvent) -> Vec<StyledLine> {
    match event {
        DeliveryEvent::CiProgress { counts, .. } => {
            vec![quiet_line(&format!("checks at the source host: {counts}"))]
        }
        DeliveryEvent::CiFinished {
            outcome,
            failed,
            decision,
            ..
        } => vec![ci_line(*outcome, failed, *decision)],
        DeliveryEvent::OverlapFound { overlap, .. } => vec![warning_line(&overlap_text(overlap))],
        DeliveryEvent::OverlapEnded { number } => vec![quiet_line(&format!(
            "pull request #{number} no longer changes the same files"
        ))],
        DeliveryEvent::ReviewsReceived { reviewers, .. } => vec![warning_line(&format!(
            "changes are requested in the pull request by {}",
            reviewers.join(", ")
        ))],
        DeliveryEvent::BaseMoved { branch, head } => vec![warning_line(&format!(
            "the base branch `{branch}` is at {} at the source host: update the branch by a merge when the run has ended; ralph never rebases pushed commits",
            head.short()
        ))],
        DeliveryEvent::BasePullClosed {
            branch,
            number,
            state,
            ..
        } => vec![warning_line(&base_pull_text(branch, *number, *state))],
        DeliveryEvent::CommitsImported { .. }
        | DeliveryEvent::ImportRefused { .. }
        | DeliveryEvent::PushStarted { .. }
        | DeliveryEvent::Pushed { .. }
        | DeliveryEvent::PullRequestStarted { .. }
        | DeliveryEvent::PullRequestUpdated { .. }
        | DeliveryEvent::StateSaved { .. }
        | DeliveryEvent::Discarded { .. } => Vec::new(),
    }
}

/// Returns the facts about the source host for the end of a run.
pub(super) fn result_lines(state: &RunState) -> Vec<String> {
    let host = &state.host;
    let ci = host.ci.as_ref().filter(|ci| ci.commit == state.head);
    let checks = ci.map(|ci| {
        format!(
            "checks at the source host: {}",
            outcome_text(ci.outcome, &ci.failed)
        )
    });
    let overlaps = host.overlaps.values().map(overlap_text);
    let base = host.closed_base.as_ref();
    let base =
        base.map(|closed| base_pull_text(&state.plan.base_branch, closed.number, closed.state));
    checks.into_iter().chain(overlaps).chain(base).collect()
}

fn ci_line(outcome: CiOutcome, failed: &[String], decision: CiDecision) -> StyledLine {
    let text = format!(
        "checks at the source host: {}",
        outcome_text(outcome, failed)
    );
    match (outcome, decision) {
        (CiOutcome::Passed, _) => marked_line(GOOD, Tone::Good).wrapped(Tone::Plain, &text),
        (_, CiDecision::Success) => warning_line(&format!("{text}, which are not required")),
        (_, CiDecision::Retry | CiDecision::Pause) => {
            marked_line(BAD, Tone::Bad).wrapped(Tone::Plain, &text)
        }
    }
}

fn outcome_text(outcome: CiOutcome, failed: &[String]) -> String {
    match outcome {
        CiOutcome::Passed => "passed".to_owned(),
        CiOutcome::Failed => format!("failed: {}", failed.join(", ")),
        CiOutcome::Missing => "none was started".to_owned(),
        CiOutcome::TimedOut => "not completed in time".to_owned(),
    }
}

fn overlap_text(overlap: &PullOverlap) -> String {
    format!(
        "pull request #{} changes {} of this branch: {}",
        overlap.number,
        overlap.shared_part(),
        overlap.url
    )
}

fn base_pull_text(branch: &str, number: u64, state: PullState) -> String {
    match state {
        PullState::Merged => format!(
            "pull request #{number} of the base branch `{branch}` was merged: change the base of this pull request"
        ),
        PullState::Closed | PullState::Draft | PullState::Open => format!(
            "pull request #{number} of the base branch `{branch}` was closed without a merge: this branch contains its commits"
        ),
    }
}

//! Commits, the pull request and the verification.

use ralph_app::format;
use ralph_core::event::{DeliveryEvent, VerificationEvent};
use ralph_core::id::CommitId;
use ralph_core::ports::{PullRequest, PullState};
use ralph_core::verdict::CheckResult;

use super::pieces::{self, BAD, heading_lines, marked_line, quiet_line, reason_lines, result_line};
use super::{Style, source_host};
use crate::terminal::styled_line::{StyledLine, Tone};

pub(super) fn delivery_lines(event: &DeliveryEvent) -> Vec<StyledLine> {
    match event {
        DeliveryEvent::CommitsImported { head, commits } => {
            let commits = format::plural(*commits, "commit", "commits");
            vec![quiet_line(&format!(
                "imported {commits}, now at {}",
                head.short()
            ))]
        }
        DeliveryEvent::ImportRefused { why } => vec![
            marked_line(BAD, Tone::Bad)
                .plain("the commits were not imported: ")
                .wrapped(Tone::Plain, why),
        ],
        DeliveryEvent::Pushed { branch, head } => {
            vec![quiet_line(&format!(
                "pushed {} to `{branch}`",
                head.short()
            ))]
        }
        DeliveryEvent::PullRequestUpdated { pull, opened } => {
            vec![pull_request_line(pull, *opened)]
        }
        DeliveryEvent::Discarded { branch } => {
            vec![quiet_line(&format!("branch `{branch}` was discarded"))]
        }
        DeliveryEvent::CiProgress { .. }
        | DeliveryEvent::CiFinished { .. }
        | DeliveryEvent::OverlapFound { .. }
        | DeliveryEvent::OverlapEnded { .. }
        | DeliveryEvent::ReviewsReceived { .. }
        | DeliveryEvent::BaseMoved { .. }
        | DeliveryEvent::BasePullClosed { .. } => source_host::event_lines(event),
        DeliveryEvent::PushStarted { .. }
        | DeliveryEvent::PullRequestStarted { .. }
        | DeliveryEvent::StateSaved { .. } => Vec::new(),
    }
}

pub(super) fn verification_lines(event: &VerificationEvent, style: Style) -> Vec<StyledLine> {
    match event {
        VerificationEvent::BaselineFinished {
            commit,
            checks,
            green,
            cached,
            ..
        } => vec![baseline_line(commit, checks.len(), green, *cached)],
        VerificationEvent::VerifyStarted { head } => {
            heading_lines(&format!("verification of {}", head.short()), style)
        }
        VerificationEvent::VerifyFinished {
            head,
            green,
            checks,
            reasons,
            findings,
            ..
        } => {
            let mut lines = verdict_lines(head, *green, checks, reasons);
            let findings = pieces::finding_lines(findings);
            lines.extend(
                findings
                    .iter()
                    .map(|text| StyledLine::from_text("  ").wrapped(Tone::Warn, text)),
            );
            lines
        }
        VerificationEvent::TestChangesApproved { .. } => {
            vec![quiet_line("the changes to existing tests are approved")]
        }
        VerificationEvent::SuccessRefused { reasons, .. } => {
            let mut lines = vec![marked_line(BAD, Tone::Warn).plain("not done yet")];
            lines.extend(pieces::reason_lines(reasons.iter().map(String::as_str)));
            lines
        }
        VerificationEvent::BaselineStarted { .. } | VerificationEvent::CheckStarted { .. } => {
            Vec::new()
        }
    }
}

/// Lists the checks that are green at the base commit.
fn baseline_line(commit: &CommitId, checks: usize, green: &[String], cached: bool) -> StyledLine {
    /// The number of checks that are named.
    const MAX_NAMED: usize = 12;
    let source = if cached {
        ", known from an earlier run"
    } else {
        ""
    };
    let base = commit.short();
    if green.is_empty() {
        return quiet_line(&format!(
            "no check is green at {base} before any work{source}"
        ));
    }
    let more = match green.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown: Vec<&str> = green.iter().take(MAX_NAMED).map(String::as_str).collect();
    StyledLine::from_text("  » ").wrapped(
        Tone::Plain,
        &format!(
            "already green at {base} before any work ({} of {checks} checks{source}): {}{more}",
            green.len(),
            shown.join(", ")
        ),
    )
}

fn pull_request_line(pull: &PullRequest, opened: bool) -> StyledLine {
    let verb = if opened { "opened" } else { "updated" };
    StyledLine::from_text("  ")
        .span(Tone::Accent, &format!("pull request #{}", pull.number))
        .plain(&format!(" {verb} ({}) ", state_name(pull.state)))
        .strong(&pull.url)
}

/// Returns the printed name of a pull request's state.
pub(super) fn state_name(state: PullState) -> &'static str {
    match state {
        PullState::Draft => "draft",
        PullState::Open => "open",
        PullState::Merged => "merged",
        PullState::Closed => "closed",
    }
}

fn verdict_lines(
    head: &CommitId,
    green: bool,
    checks: &[CheckResult],
    why: &[String],
) -> Vec<StyledLine> {
    let mut lines: Vec<StyledLine> = checks.iter().map(pieces::check_line).collect();
    let verdict = if green {
        format!("{} is green in a clean room", head.short())
    } else {
        format!("{} is not green", head.short())
    };
    lines.push(result_line(green).strong(&verdict));
    lines.extend(reason_lines(why.iter().map(String::as_str)));
    lines
}

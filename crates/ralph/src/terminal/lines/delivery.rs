//! Commits, the pull request and the verification.

use ralph_core::event::Event;
use ralph_core::id::CommitId;
use ralph_core::ports::{PullRequest, PullState};
use ralph_core::verdict::CheckResult;

use super::Style;
use super::pieces::{self, BAD, aside, heading, judged, marked, reasons};
use crate::terminal::format;
use crate::terminal::line::{Line, Tone};

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`of` decides exhaustively which events come here"
)]
pub(super) fn lines(event: &Event, style: Style) -> Vec<Line> {
    match event {
        Event::CommitsImported { head, commits } => {
            let commits = format::plural(*commits, "commit", "commits");
            vec![aside(&format!("took {commits}, now at {}", head.short()))]
        }
        Event::ImportRefused { why } => vec![
            marked(BAD, Tone::Bad)
                .plain("the commits were not taken: ")
                .folded(Tone::Plain, why),
        ],
        Event::Pushed { branch, head } => {
            vec![aside(&format!("pushed {} to `{branch}`", head.short()))]
        }
        Event::PullRequestUpdated { pull, opened } => vec![pull_request(pull, *opened)],
        Event::VerifyStarted { head } => {
            heading(&format!("verification of {}", head.short()), style)
        }
        Event::VerifyFinished {
            head,
            green,
            checks,
            reasons,
            findings,
            ..
        } => {
            let mut lines = verified(head, *green, checks, reasons);
            let findings = pieces::findings(findings);
            lines.extend(
                findings
                    .iter()
                    .map(|text| Line::of("  ").folded(Tone::Warn, text)),
            );
            lines
        }
        Event::BaselineFinished {
            commit,
            checks,
            green,
            cached,
            ..
        } => vec![baseline(commit, checks.len(), green, *cached)],
        Event::TestChangesApproved { .. } => {
            vec![aside("the changes to existing tests are approved")]
        }
        Event::SuccessRefused { reasons, .. } => {
            let mut lines = vec![marked(BAD, Tone::Warn).plain("not done yet")];
            lines.extend(pieces::reasons(reasons.iter().map(String::as_str)));
            lines
        }
        // Intents and bookkeeping; their outcomes are told.
        _ => Vec::new(),
    }
}

/// Tells which checks were green before any work.
fn baseline(commit: &CommitId, checks: usize, green: &[String], cached: bool) -> Line {
    /// How many are named.
    const SHOWN: usize = 12;
    let known = if cached {
        ", known from an earlier run"
    } else {
        ""
    };
    let base = commit.short();
    if green.is_empty() {
        return aside(&format!(
            "no check is green at {base} before any work{known}"
        ));
    }
    let more = match green.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown: Vec<&str> = green.iter().take(SHOWN).map(String::as_str).collect();
    Line::of("  » ").folded(
        Tone::Plain,
        &format!(
            "already green at {base} before any work ({} of {checks} checks{known}): {}{more}",
            green.len(),
            shown.join(", ")
        ),
    )
}

fn pull_request(pull: &PullRequest, opened: bool) -> Line {
    let done = if opened { "opened" } else { "updated" };
    Line::of("  ")
        .with(Tone::Accent, &format!("pull request #{}", pull.number))
        .plain(&format!(" {done} ({}) ", state_word(pull.state)))
        .strong(&pull.url)
}

/// Returns the word that scripts and people see for a pull request's state.
pub(super) fn state_word(state: PullState) -> &'static str {
    match state {
        PullState::Draft => "draft",
        PullState::Open => "open",
    }
}

fn verified(head: &CommitId, green: bool, checks: &[CheckResult], why: &[String]) -> Vec<Line> {
    let mut lines: Vec<Line> = checks.iter().map(pieces::check).collect();
    let verdict = if green {
        format!("{} is green in a clean room", head.short())
    } else {
        format!("{} is not green", head.short())
    };
    lines.push(judged(green).strong(&verdict));
    lines.extend(reasons(why.iter().map(String::as_str)));
    lines
}

//! Lines about the model's actions in an iteration and their results.

use ralph_app::format;
use ralph_app::runs::{action_label, asking_label};
use ralph_core::event::{
    ActionResult, IterationEvent, IterationMetrics, IterationOutcome, ModelEvent,
};
use ralph_core::id::CommitId;
use ralph_core::money::Usd;
use ralph_core::ports::TokenUsage;
use ralph_core::state::RunState;

use super::pieces::{
    BAD, GOOD, SKIPPED, heading_lines, marked_line, quiet_line, reason_lines, result_line,
    short_quiet_line,
};
use super::{Style, budgets, circling, pieces};
use crate::terminal::styled_line::{StyledLine, Tone};

/// The number of lines of a failed command's output that are shown; the rest is in its file.
const TAIL_LINES: usize = 8;

pub(super) fn iteration_lines(
    event: &IterationEvent,
    state: &RunState,
    style: Style,
) -> Vec<StyledLine> {
    match event {
        IterationEvent::IterationStarted { iteration, .. } => {
            heading_lines(&format!("iteration {iteration}"), style)
        }
        IterationEvent::ActionStarted { action, label, .. } => match action.as_str() {
            "run" => intent_lines(&action_label(action, label), style),
            _ => Vec::new(),
        },
        IterationEvent::ActionFinished {
            action,
            label,
            result,
            duration_ms,
            tail,
            ..
        } => action_lines(&action_label(action, label), result, *duration_ms, tail),
        IterationEvent::ClaimChecked {
            checkbox,
            verified,
            why,
            checks,
            ..
        } => {
            let mut lines = vec![claim_line(checkbox, *verified, why)];
            let red = checks.iter().filter(|check| !check.is_green());
            lines.extend(red.map(|check| pieces::check_line(check).indented()));
            lines
        }
        IterationEvent::BoxesTicked { ticked } => {
            let (count, total) = (ticked.len(), state.checkboxes);
            let names = ticked.join(", ");
            vec![quiet_line(&format!("boxes {count}/{total}: {names}"))]
        }
        IterationEvent::TestsRun { check, .. } => vec![pieces::check_line(check)],
        IterationEvent::IterationFinished {
            iteration,
            outcome,
            metrics,
            ..
        } => {
            let mut lines = vec![finished_line(*iteration, outcome, metrics)];
            lines.extend(budgets::lines(&state.limits, &state.spent(), style));
            lines
        }
        IterationEvent::Gutter {
            score,
            consecutive,
            evidence,
            mitigation,
            skipped,
            ..
        } => circling::gutter_lines(*score, *consecutive, evidence, mitigation, skipped),
    }
}

pub(super) fn model_lines(event: &ModelEvent, style: Style) -> Vec<StyledLine> {
    match event {
        ModelEvent::ModelAsked {
            attempt,
            prompt_bytes,
            ..
        } => {
            let size = format::bytes(*prompt_bytes as u64);
            let label = asking_label(*attempt);
            intent_lines(&format!("{label} ({size})"), style)
        }
        ModelEvent::ModelReplied {
            usage,
            cost_usd,
            duration_ms,
            ..
        } => vec![reply_line(*usage, *cost_usd, *duration_ms)],
        ModelEvent::ModelFailed {
            error, retry_in_ms, ..
        } => {
            let next = retry_in_ms.map_or_else(String::new, |wait| {
                format!("; retrying in {}", format::milliseconds(wait))
            });
            vec![marked_line(BAD, Tone::Bad).wrapped(Tone::Plain, &format!("{error}{next}"))]
        }
        ModelEvent::ModelAbandoned { cost_usd, .. } => {
            let text = format!("a reply was incomplete; {cost_usd} is charged for it");
            vec![marked_line(BAD, Tone::Warn).plain(&text)]
        }
        ModelEvent::ReplyRejected { errors, .. } => {
            let mut lines = vec![marked_line(BAD, Tone::Bad).plain("the reply cannot be used")];
            lines.extend(reason_lines(errors.lines().take(TAIL_LINES)));
            lines
        }
        ModelEvent::ReplyAccepted {
            summary, repaired, ..
        } => {
            let mut lines = vec![StyledLine::from_text("  ").wrapped(Tone::Strong, summary)];
            if *repaired {
                lines.push(quiet_line(
                    "the reply had to be repaired before it could be read",
                ));
            }
            lines
        }
    }
}

/// Returns the line for a step in progress; on a terminal the spinner shows it instead.
pub(super) fn intent_lines(text: &str, style: Style) -> Vec<StyledLine> {
    match style {
        Style::Plain => vec![quiet_line(&format!("… {text}"))],
        Style::Rich { .. } => Vec::new(),
    }
}

fn reply_line(usage: TokenUsage, cost: Usd, duration_ms: u64) -> StyledLine {
    let input = format::count(usage.input_tokens);
    let output = format::count(usage.output_tokens);
    short_quiet_line(&format!(
        "the model answered: {input} tokens in, {output} out, {cost}"
    ))
    .right_aligned(&format::milliseconds(duration_ms))
}

/// Shortens the ids of commits, which would leave no room for the rest of a line.
fn with_short_commits(detail: &str) -> String {
    let shorten = |word: &str| {
        let id = word.trim_end_matches([';', ',']);
        match CommitId::parse(id) {
            Some(commit) => format!("{}{}", commit.short(), &word[id.len()..]),
            None => word.to_owned(),
        }
    };
    let words: Vec<String> = detail.split(' ').map(shorten).collect();
    words.join(" ")
}

fn action_lines(
    name: &str,
    result: &ActionResult,
    duration_ms: u64,
    tail: &str,
) -> Vec<StyledLine> {
    let duration = format::milliseconds(duration_ms);
    let line = |mark, tone| marked_line(mark, tone).shortened(Tone::Plain, name);
    match result {
        ActionResult::Done { detail } => {
            vec![
                line(GOOD, Tone::Good)
                    .quiet(&separated(&with_short_commits(detail)))
                    .right_aligned(&duration),
            ]
        }
        ActionResult::Ran { ended, .. } => {
            let line = result_line(ended.is_success())
                .shortened(Tone::Plain, name)
                .quiet(&separated(&ended.to_string()))
                .right_aligned(&duration);
            let mut lines = vec![line];
            if !ended.is_success() {
                lines.extend(tail_lines(tail));
            }
            lines
        }
        ActionResult::Failed { why } => {
            let mut lines = vec![
                line(BAD, Tone::Bad).right_aligned(&duration),
                reason_line(why),
            ];
            lines.extend(tail_lines(tail));
            lines
        }
        ActionResult::Refused { why } => {
            vec![
                line(SKIPPED, Tone::Warn).plain(" refused"),
                reason_line(why),
            ]
        }
        ActionResult::Skipped { why } => {
            vec![line(SKIPPED, Tone::Quiet).quiet(&separated(&format!("skipped: {why}")))]
        }
        ActionResult::Interrupted => {
            let note = separated("interrupted; it runs again");
            vec![line(BAD, Tone::Bad).plain(&note).right_aligned(&duration)]
        }
    }
}

fn separated(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" · {text}")
    }
}

fn reason_line(why: &str) -> StyledLine {
    StyledLine::from_text("    ").wrapped(Tone::Plain, why)
}

fn tail_lines(tail: &str) -> Vec<StyledLine> {
    let lines: Vec<&str> = tail.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines[from..]
        .iter()
        .map(|line| StyledLine::from_text("    ").quiet("│ ").quiet(line).cut())
        .collect()
}

fn claim_line(checkbox: &str, verified: bool, why: &str) -> StyledLine {
    let line = result_line(verified).strong(checkbox);
    match (verified, why) {
        (true, "") => line.plain(" verified"),
        (true, why) => line.plain(" verified").quiet(&separated(why)),
        (false, why) => line.plain(" not verified: ").wrapped(Tone::Plain, why),
    }
}

fn finished_line(
    iteration: u32,
    outcome: &IterationOutcome,
    metrics: &IterationMetrics,
) -> StyledLine {
    let diff = metrics.diff;
    let change = if diff.files == 0 {
        "nothing changed".to_owned()
    } else {
        let files = format::plural(diff.files, "file", "files");
        format!("+{} −{} in {files}", diff.added, diff.removed)
    };
    let circling = metrics
        .loop_score
        .filter(|score| *score > 0.0)
        .map_or_else(String::new, |score| format!(" · loop score {score:.1}"));
    StyledLine::from_text("  ")
        .span(Tone::Accent, &format!("iteration {iteration} "))
        .plain(&outcome_text(outcome))
        .quiet(&format!(" · {change}{circling}"))
        .right_aligned(&format::milliseconds(metrics.duration_ms))
}

fn outcome_text(outcome: &IterationOutcome) -> String {
    match outcome {
        IterationOutcome::Completed => "is complete".into(),
        IterationOutcome::ActionFailed { index } => {
            format!("ended at action {}", index + 1)
        }
        IterationOutcome::Unreadable => "ended without a usable reply".into(),
        IterationOutcome::Rotated => "ended for a fresh start".into(),
        IterationOutcome::Paused => "ended with a question".into(),
        IterationOutcome::StopRequested => "ended with the claim of success".into(),
        IterationOutcome::GaveUp => "ended because the model gave up".into(),
        IterationOutcome::OutOfBudget => "ended because a budget is used up".into(),
        IterationOutcome::SandboxLost => "ended because its sandbox was lost".into(),
        IterationOutcome::AgentStopped { why } => format!("ended: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_have_short_ids() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let detail = format!("commit {id}, 2 files");
        assert_eq!(with_short_commits(&detail), "commit 0123456789, 2 files");
        let detail = format!("commit {id} created");
        assert_eq!(with_short_commits(&detail), "commit 0123456789 created");
    }
}

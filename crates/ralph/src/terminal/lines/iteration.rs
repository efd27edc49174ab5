//! What the model does in an iteration, and what the runner finds out about it.

use ralph_core::event::{ActionResult, Event, IterationMetrics, IterationOutcome};
use ralph_core::money::Usd;
use ralph_core::ports::TokenUsage;
use ralph_core::state::RunState;

use super::pieces::{
    BAD, GOOD, SKIPPED, heading_lines, marked_line, quiet_line, reason_lines, result_line,
    warning_line,
};
use super::{Style, budgets, pieces};
use crate::terminal::format;
use crate::terminal::styled_line::{StyledLine, Tone};

/// How many lines of a failed command's output are shown; the rest is in its file.
const TAIL_LINES: usize = 8;

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`of` decides exhaustively which events come here"
)]
pub(super) fn lines(event: &Event, state: &RunState, style: Style) -> Vec<StyledLine> {
    match event {
        Event::IterationStarted { iteration, .. } => {
            heading_lines(&format!("iteration {iteration}"), style)
        }
        Event::ActionFinished {
            action,
            label,
            result,
            duration_ms,
            tail,
            ..
        } => action_lines(
            &pieces::action_label(action, label),
            result,
            *duration_ms,
            tail,
        ),
        Event::ClaimChecked {
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
        Event::BoxesTicked { ticked } => {
            let total = state.checkboxes;
            let names = ticked.join(", ");
            vec![quiet_line(&format!(
                "boxes {}/{total}: {names}",
                ticked.len()
            ))]
        }
        Event::TestsRun { check, .. } => vec![pieces::check_line(check)],
        Event::Tamper { path, finding, .. } => {
            vec![warning_line(&format!("tampering: `{path}` {finding}"))]
        }
        Event::IterationFinished {
            iteration,
            outcome,
            metrics,
            ..
        } => {
            let mut lines = vec![finished_line(*iteration, outcome, metrics)];
            lines.extend(budgets::lines(&state.limits, &state.spent(), style));
            lines
        }
        _ => model_lines(event, style),
    }
}

/// What goes back and forth between runner and model.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`of` decides exhaustively which events come here"
)]
fn model_lines(event: &Event, style: Style) -> Vec<StyledLine> {
    match event {
        Event::ModelReplied {
            usage,
            cost_usd,
            duration_ms,
            ..
        } => vec![reply_line(*usage, *cost_usd, *duration_ms)],
        Event::ModelFailed {
            error, retry_in_ms, ..
        } => {
            let next = retry_in_ms.map_or_else(String::new, |wait| {
                format!("; asked again in {}", format::milliseconds(wait))
            });
            vec![marked_line(BAD, Tone::Bad).wrapped(Tone::Plain, &format!("{error}{next}"))]
        }
        Event::ModelAbandoned { cost_usd, .. } => {
            let text = format!("an answer was not heard to its end; {cost_usd} are charged for it");
            vec![marked_line(BAD, Tone::Warn).plain(&text)]
        }
        Event::ReplyRejected { errors, .. } => {
            let mut lines = vec![marked_line(BAD, Tone::Bad).plain("the reply cannot be used")];
            lines.extend(reason_lines(errors.lines().take(TAIL_LINES)));
            lines
        }
        Event::ReplyAccepted {
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
        _ if style == Style::Plain => action_intent(event)
            .map_or_else(Vec::new, |text| vec![quiet_line(&format!("… {text}"))]),
        // On a terminal the spinner says what begins.
        _ => Vec::new(),
    }
}

/// Returns what begins and takes its time.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`of` decides exhaustively which events come here"
)]
fn action_intent(event: &Event) -> Option<String> {
    match event {
        Event::ModelAsked {
            attempt,
            prompt_bytes,
            ..
        } => {
            let size = format::bytes(*prompt_bytes as u64);
            Some(format!("{} ({size})", pieces::asking_label(*attempt)))
        }
        Event::ActionStarted { action, label, .. } if action == "run" => {
            Some(pieces::action_label(action, label))
        }
        _ => None,
    }
}

fn reply_line(usage: TokenUsage, cost: Usd, duration_ms: u64) -> StyledLine {
    let input = format::count(usage.input_tokens);
    let output = format::count(usage.output_tokens);
    quiet_line(&format!(
        "the model answered: {input} tokens in, {output} out, {cost}"
    ))
    .right_aligned(&format::milliseconds(duration_ms))
}

fn action_lines(
    name: &str,
    result: &ActionResult,
    duration_ms: u64,
    tail: &str,
) -> Vec<StyledLine> {
    let duration = format::milliseconds(duration_ms);
    let line = |mark, tone| marked_line(mark, tone).plain(name);
    match result {
        ActionResult::Done { detail } => {
            vec![
                line(GOOD, Tone::Good)
                    .quiet(&separated(detail))
                    .right_aligned(&duration),
            ]
        }
        ActionResult::Ran { ended, .. } => {
            let line = result_line(ended.is_success())
                .plain(name)
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
            let what = separated("interrupted; it runs again");
            vec![line(BAD, Tone::Bad).plain(&what).right_aligned(&duration)]
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
        .map(|line| StyledLine::from_text("    ").quiet("│ ").quiet(line))
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
        IterationOutcome::StopRequested => "ended with the claim to be done".into(),
        IterationOutcome::GaveUp => "ended because the model gave up".into(),
        IterationOutcome::OutOfBudget => "ended at a used-up budget".into(),
        IterationOutcome::SandboxLost => "ended because its sandbox was lost".into(),
        IterationOutcome::AgentStopped { why } => format!("ended: {why}"),
    }
}

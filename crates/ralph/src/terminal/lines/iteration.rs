//! What the model does in an iteration, and what the runner finds out about it.

use ralph_core::event::{ActionResult, Event, IterationOutcome, Metrics};
use ralph_core::money::Usd;
use ralph_core::ports::Usage;
use ralph_core::state::RunState;

use super::pieces::{BAD, GOOD, NOT_DONE, aside, heading, judged, marked, reasons, warning};
use super::{Style, budgets, pieces};
use crate::terminal::format;
use crate::terminal::line::{Line, Tone};

/// How many lines of a failed command's output are shown; the rest is in its file.
const TAIL_LINES: usize = 8;

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`of` decides exhaustively which events come here"
)]
pub(super) fn lines(event: &Event, state: &RunState, style: Style) -> Vec<Line> {
    match event {
        Event::IterationStarted { iteration, .. } => {
            heading(&format!("iteration {iteration}"), style)
        }
        Event::ActionFinished {
            action,
            label,
            result,
            duration_ms,
            tail,
            ..
        } => action_lines(&pieces::action(action, label), result, *duration_ms, tail),
        Event::ClaimChecked {
            checkbox,
            verified,
            why,
            checks,
            ..
        } => {
            let mut lines = vec![claim(checkbox, *verified, why)];
            let red = checks.iter().filter(|check| !check.is_green());
            lines.extend(red.map(|check| pieces::check(check).indented()));
            lines
        }
        Event::BoxesTicked { ticked } => {
            let total = state.checkboxes;
            let names = ticked.join(", ");
            vec![aside(&format!("boxes {}/{total}: {names}", ticked.len()))]
        }
        Event::TestsRun { check, .. } => vec![pieces::check(check)],
        Event::Tamper { path, finding, .. } => {
            vec![warning(&format!("tampering: `{path}` {finding}"))]
        }
        Event::IterationFinished {
            iteration,
            outcome,
            metrics,
            ..
        } => {
            let mut lines = vec![finished(*iteration, outcome, metrics)];
            lines.extend(budgets::lines(&state.limits, &state.spent(), style));
            lines
        }
        _ => conversation(event, style),
    }
}

/// What goes back and forth between runner and model.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`of` decides exhaustively which events come here"
)]
fn conversation(event: &Event, style: Style) -> Vec<Line> {
    match event {
        Event::ModelReplied {
            usage,
            cost_usd,
            duration_ms,
            ..
        } => vec![replied(*usage, *cost_usd, *duration_ms)],
        Event::ModelFailed {
            error, retry_in_ms, ..
        } => {
            let next = retry_in_ms.map_or_else(String::new, |wait| {
                format!("; asked again in {}", format::milliseconds(wait))
            });
            vec![marked(BAD, Tone::Bad).folded(Tone::Plain, &format!("{error}{next}"))]
        }
        Event::ModelAbandoned { cost_usd, .. } => {
            let text = format!("an answer was not heard to its end; {cost_usd} are charged for it");
            vec![marked(BAD, Tone::Warn).plain(&text)]
        }
        Event::ReplyRejected { errors, .. } => {
            let mut lines = vec![marked(BAD, Tone::Bad).plain("the reply cannot be used")];
            lines.extend(reasons(errors.lines().take(TAIL_LINES)));
            lines
        }
        Event::ReplyAccepted {
            summary, repaired, ..
        } => {
            let mut lines = vec![Line::of("  ").folded(Tone::Strong, summary)];
            if *repaired {
                lines.push(aside(
                    "the reply had to be repaired before it could be read",
                ));
            }
            lines
        }
        _ if style == Style::Plain => {
            intent(event).map_or_else(Vec::new, |text| vec![aside(&format!("… {text}"))])
        }
        // On a terminal the spinner says what begins.
        _ => Vec::new(),
    }
}

/// Returns what begins and takes its time.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`of` decides exhaustively which events come here"
)]
fn intent(event: &Event) -> Option<String> {
    match event {
        Event::ModelAsked {
            attempt,
            prompt_bytes,
            ..
        } => {
            let size = format::bytes(*prompt_bytes as u64);
            Some(format!("{} ({size})", pieces::asking(*attempt)))
        }
        Event::ActionStarted { action, label, .. } if action == "run" => {
            Some(pieces::action(action, label))
        }
        _ => None,
    }
}

fn replied(usage: Usage, cost: Usd, duration_ms: u64) -> Line {
    let input = format::count(usage.input_tokens);
    let output = format::count(usage.output_tokens);
    aside(&format!(
        "the model answered: {input} tokens in, {output} out, {cost}"
    ))
    .at_right(&format::milliseconds(duration_ms))
}

fn action_lines(name: &str, result: &ActionResult, duration_ms: u64, tail: &str) -> Vec<Line> {
    let duration = format::milliseconds(duration_ms);
    let line = |mark, tone| marked(mark, tone).plain(name);
    match result {
        ActionResult::Done { detail } => {
            vec![
                line(GOOD, Tone::Good)
                    .quiet(&apart(detail))
                    .at_right(&duration),
            ]
        }
        ActionResult::Ran { ended, .. } => {
            let line = judged(ended.is_success())
                .plain(name)
                .quiet(&apart(&ended.to_string()))
                .at_right(&duration);
            let mut lines = vec![line];
            if !ended.is_success() {
                lines.extend(tail_lines(tail));
            }
            lines
        }
        ActionResult::Failed { why } => {
            let mut lines = vec![line(BAD, Tone::Bad).at_right(&duration), reason(why)];
            lines.extend(tail_lines(tail));
            lines
        }
        ActionResult::Refused { why } => {
            vec![line(NOT_DONE, Tone::Warn).plain(" refused"), reason(why)]
        }
        ActionResult::Skipped { why } => {
            vec![line(NOT_DONE, Tone::Quiet).quiet(&apart(&format!("skipped: {why}")))]
        }
        ActionResult::Interrupted => {
            let what = apart("interrupted; it runs again");
            vec![line(BAD, Tone::Bad).plain(&what).at_right(&duration)]
        }
    }
}

fn apart(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" · {text}")
    }
}

fn reason(why: &str) -> Line {
    Line::of("    ").folded(Tone::Plain, why)
}

fn tail_lines(tail: &str) -> Vec<Line> {
    let lines: Vec<&str> = tail.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines[from..]
        .iter()
        .map(|line| Line::of("    ").quiet("│ ").quiet(line))
        .collect()
}

fn claim(checkbox: &str, verified: bool, why: &str) -> Line {
    let line = judged(verified).strong(checkbox);
    match (verified, why) {
        (true, "") => line.plain(" verified"),
        (true, why) => line.plain(" verified").quiet(&apart(why)),
        (false, why) => line.plain(" not verified: ").folded(Tone::Plain, why),
    }
}

fn finished(iteration: u32, outcome: &IterationOutcome, metrics: &Metrics) -> Line {
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
    Line::of("  ")
        .with(Tone::Accent, &format!("iteration {iteration} "))
        .plain(&told(outcome))
        .quiet(&format!(" · {change}{circling}"))
        .at_right(&format::milliseconds(metrics.duration_ms))
}

fn told(outcome: &IterationOutcome) -> String {
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

//! `ralph show`: tells where a run stands.

use ralph_core::state::RunState;
use ralph_core::verdict::{TestCount, VerifyFinding};
use ralph_engine::store::RunDir;
use serde::Serialize;

use super::args::ShowArgs;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use super::runs::tone;
use super::show_steering::Steering;
use super::summary::Summary;
use crate::terminal::format;
use crate::terminal::line::Line;
use crate::terminal::lines::{self, Style, budgets, field, life};

/// Prints a block for people, or the fields for scripts.
pub(super) fn run(args: &ShowArgs, context: &Context) -> Result<ExitCode, CliError> {
    let dir = context.find(&args.run)?;
    let state = dir.state()?;
    let summary = Summary::of(&dir, &state);
    let output = context.output();
    if args.json {
        output.json(&Shown {
            summary,
            steering: Steering::of(&state),
            tests: state.verified_tests,
            findings: state.findings,
        })?;
    } else {
        let style = match output.look().columns() {
            Some(columns) => Style::Rich { columns },
            None => Style::Plain,
        };
        output.lines(&block(&dir, &state, &summary, context.clock().now(), style))?;
    }
    Ok(ExitCode::Success)
}

/// A run for scripts: what `runs` says of it, and what people can do about it.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    summary: Summary,
    #[serde(flatten)]
    steering: Steering,
    /// The tests of the last verification, if they could be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<TestCount>,
    /// What qualifies the last verdict of a clean room.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<VerifyFinding>,
}

fn block(
    dir: &RunDir,
    state: &RunState,
    summary: &Summary,
    now: jiff::Timestamp,
    style: Style,
) -> Vec<Line> {
    let mut lines = life::plan(&state.plan);
    lines.push(Line::new());
    lines.push(field("status", "").with(tone(summary.status), summary.status));
    if let Some(reason) = &summary.reason {
        lines.push(field("reason", reason));
    }
    lines.push(field("used", &life::figures(state)));
    lines.push(field("active", &format::age(now, state.updated_at)));
    lines.push(field("boxes", &boxes(state)));
    lines.push(field("head", state.head.as_str()));
    lines.push(field("mode", state.mode.word()));
    lines.extend(circling(state));
    lines.extend(Steering::of(state).lines());
    if let Some((commit, green)) = &state.verified {
        let green = if *green { "green" } else { "not green" };
        let verdict = format!("{} is {green} in a clean room", commit.short());
        lines.push(field("verified", &verdict));
        let tests = state.verified_tests;
        lines.extend(tests.map(|tests| field("tests", &tests.to_string())));
        let findings = lines::findings(&state.findings);
        lines.extend(findings.iter().map(|finding| field("", finding)));
    }
    if let Some(pull) = &state.pull {
        lines.push(field("pr", &life::pull(pull)));
    }
    lines.push(field("files", &dir.root().display().to_string()));
    let bars = budgets::lines(&state.limits, &state.spent(), style);
    if !bars.is_empty() {
        lines.push(Line::new());
        lines.extend(bars);
    }
    lines
}

/// Tells whether the run goes in circles, why that looks so, and what was done about it.
fn circling(state: &RunState) -> Vec<Line> {
    let mut lines = Vec::new();
    let report = state.last_metrics.as_ref();
    let report = report.and_then(|metrics| metrics.gutter.as_ref());
    if let (Some(score), Some(report)) = (state.loop_scores.last(), report) {
        let times = match state.ladder.consecutive {
            0 => String::new(),
            times => format!(" · {times} in a row"),
        };
        let step = report.step.as_ref();
        let step = step.map_or_else(String::new, |step| format!(" · {step}"));
        lines.push(field("loop", &format!("score {score:.1}{times}{step}")));
        let signals = report.signals.iter();
        lines.extend(signals.map(|signal| field("", &signal.to_string())));
    }
    if let Some(profile) = &state.profile {
        lines.push(field("profile", profile));
    }
    if let Some((number, report)) = &state.doctor.report {
        let told = format!("report {number}, not applied: {}", report.summary);
        lines.push(field("doctor", &told));
    }
    lines
}

fn boxes(state: &RunState) -> String {
    let ticked: Vec<&str> = state.ticked.iter().map(String::as_str).collect();
    let named = if ticked.is_empty() {
        String::new()
    } else {
        format!(": {}", ticked.join(", "))
    };
    format!(
        "{} of {} checked off{named}",
        ticked.len(),
        state.checkboxes
    )
}

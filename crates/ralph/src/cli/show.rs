//! `ralph show`: shows the status of a run.

use clap::Args;
use ralph_app::AppError;
use ralph_app::format;
use ralph_app::results::close_if_merged;
use ralph_app::runs::{OrphanedRuns, RunDetails, RunSummary, SteeringDetails};
use ralph_app::server::ServerQueue;
use ralph_core::state::RunState;
use ralph_engine::store::RunDir;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use super::runs::status_tone;
use super::show_iteration;
use super::show_steering::steering_lines;
use crate::terminal::lines::{self, Style, budgets, field_line, lifecycle};
use crate::terminal::styled_line::StyledLine;

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Show the prompt, reply, actions, test output and diff of this iteration
    #[arg(long, value_name = "N")]
    pub iteration: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints a text block, or the fields as JSON.
pub(super) async fn run(args: ShowArgs, context: &Context) -> Result<ExitCode, AppError> {
    let dir = match context.app.find_run(&args.run.run) {
        Ok(dir) => dir,
        Err(error) => return show_orphan(&args, context, error).await,
    };
    let mut state = dir.state()?;
    if let Some(number) = args.iteration {
        return show_iteration::run((&dir, &state), number, args.json, context);
    }
    close_if_merged(&dir, &mut state, &context.app).await;
    let queue = ServerQueue::read(&context.app).await;
    let output = context.output();
    if args.json {
        output.print_json(&RunDetails::from_state(&dir, &state).in_queue(&queue))?;
    } else {
        let summary = RunSummary::from_state(&dir, &state).in_queue(&queue);
        let style = match output.style().columns() {
            Some(columns) => Style::Rich { columns },
            None => Style::Plain,
        };
        output.print_lines(&run_lines(
            &dir,
            &state,
            &summary,
            context.app.clock().now(),
            style,
        ))?;
    }
    Ok(ExitCode::Success)
}

/// Explains a run whose directory is gone. `error` is returned if there is none.
async fn show_orphan(
    args: &ShowArgs,
    context: &Context,
    error: AppError,
) -> Result<ExitCode, AppError> {
    let orphans = OrphanedRuns::find(&context.app).await?;
    let Some(orphan) = orphans.get(&args.run.run) else {
        return Err(error);
    };
    let summary = orphan.summary(context.app.clock().now());
    let output = context.output();
    if args.json {
        output.print_json(&summary)?;
        return Ok(ExitCode::Success);
    }
    let mut lines = vec![
        field_line("run", summary.id.as_str()),
        field_line("status", "").span(status_tone(summary.status), summary.status),
    ];
    lines.extend(summary.reason.map(|reason| field_line("reason", &reason)));
    output.print_lines(&lines)?;
    Ok(ExitCode::Success)
}

fn run_lines(
    dir: &RunDir,
    state: &RunState,
    summary: &RunSummary,
    now: jiff::Timestamp,
    style: Style,
) -> Vec<StyledLine> {
    let mut lines = lifecycle::plan_lines(&state.plan);
    lines.push(StyledLine::new());
    lines.push(field_line("status", "").span(status_tone(summary.status), summary.status));
    if let Some(reason) = &summary.reason {
        lines.push(field_line("reason", reason));
    }
    if let Some(origin) = &summary.origin {
        lines.push(field_line("origin", origin));
    }
    lines.push(field_line("used", &lifecycle::usage_summary(state)));
    lines.push(field_line("active", &format::age(now, state.updated_at)));
    lines.push(field_line("boxes", &checkbox_counts(state)));
    lines.push(field_line("head", state.head.as_str()));
    lines.push(field_line("mode", state.mode.as_str()));
    lines.extend(fallback_agent_line(state));
    lines.extend(circling_lines(state));
    lines.extend(steering_lines(&SteeringDetails::from_state(state)));
    if let Some((commit, green)) = &state.verified {
        let green = if *green { "green" } else { "not green" };
        let verdict = format!("{} is {green} in a clean room", commit.short());
        lines.push(field_line("verified", &verdict));
        let tests = state.verified_tests;
        lines.extend(tests.map(|tests| field_line("tests", &tests.to_string())));
        let findings = lines::finding_lines(&state.findings);
        lines.extend(findings.iter().map(|finding| field_line("", finding)));
    }
    if let Some(pull) = &state.pull {
        lines.push(field_line("pr", &lifecycle::pull_request_text(pull)));
    }
    if state.discarded {
        lines.push(field_line(
            "result",
            "discarded: its branch and sandbox are removed",
        ));
    }
    lines.push(field_line("files", &dir.root().display().to_string()));
    let bars = budgets::lines(&state.limits, &state.spent(), style);
    if !bars.is_empty() {
        lines.push(StyledLine::new());
        lines.extend(bars);
    }
    lines
}

/// Names the fallback agent, if it has replaced the agent.
fn fallback_agent_line(state: &RunState) -> Option<StyledLine> {
    let (agent, iteration) = (state.agent_in_force()?, state.fallback_agent_since()?);
    let agent = agent.label();
    let text = format!("the fallback `{agent}` works since iteration {iteration}");
    Some(field_line("in force", &text))
}

/// Describes the loop score with its signals, the profile that was switched to, and an unapplied
/// report.
fn circling_lines(state: &RunState) -> Vec<StyledLine> {
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
        lines.push(field_line(
            "loop",
            &format!("score {score:.1}{times}{step}"),
        ));
        let signals = report.signals.iter();
        lines.extend(signals.map(|signal| field_line("", &signal.to_string())));
    }
    if let Some(profile) = &state.profile {
        lines.push(field_line("profile", profile));
    }
    if let Some((number, report)) = &state.doctor.report {
        let text = format!("report {number}, not applied: {}", report.summary);
        lines.push(field_line("doctor", &text));
    }
    lines
}

fn checkbox_counts(state: &RunState) -> String {
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

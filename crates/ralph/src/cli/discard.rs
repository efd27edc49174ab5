//! `ralph discard`: removes the branch and the sandbox of a run.

use clap::Args;
use ralph_app::AppError;
use ralph_app::results::{DiscardReport, RemainingOnHost, discard_run};

use super::context::Context;
use super::exit::ExitCode;
use super::questions;
use super::run_arg::RunArg;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `discard`.
#[derive(Debug, Args)]
pub(super) struct DiscardArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Asks, unless told not to, and discards the run's result.
pub(super) async fn run(args: DiscardArgs, context: &Context) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&args.run.run)?;
    let state = dir.state()?;
    let (run, branch) = (state.plan.run.to_string(), &state.plan.branch);
    let question = if state.plan.remote_repository().is_some() {
        format!("ralph: remove the sandbox of run {run}? Its branch and its pull request stay.")
    } else {
        format!("ralph: remove branch `{branch}` and the sandbox of run {run}?")
    };
    if !args.yes && !questions::confirm(&question) {
        return Err(AppError::usage(
            format!("run `{run}` is not discarded"),
            "it needs your confirmation",
            "answer y, or use `--yes`",
        ));
    }
    let report = Box::pin(discard_run(&run, &context.app)).await?;
    if args.json {
        context.output().print_json(&report)?;
    } else {
        context.output().print_lines(&lines(&report))?;
    }
    Ok(ExitCode::Success)
}

fn lines(report: &DiscardReport) -> Vec<StyledLine> {
    let mut removed = Vec::new();
    if let Some((branch, commit)) = &report.branch {
        removed.push(format!("branch `{branch}` (was {})", commit.short()));
    }
    let sandboxes = report.sandboxes.iter();
    removed.extend(sandboxes.map(|sandbox| format!("sandbox `{sandbox}`")));
    let removed = if removed.is_empty() {
        "there was nothing left to remove".to_owned()
    } else {
        format!("removed {}", removed.join(", "))
    };
    let mut lines = vec![
        StyledLine::from_text("run ")
            .strong(report.run.as_str())
            .plain(": ")
            .plain(&removed),
    ];
    if let Some(number) = report.pull {
        lines.push(StyledLine::from_text(&format!(
            "pull request #{number} is closed"
        )));
    }
    lines.extend(report.remaining.as_ref().map(remaining_line));
    lines
}

/// Names the results that stay on a source host.
fn remaining_line(remaining: &RemainingOnHost) -> StyledLine {
    let RemainingOnHost { repo, branch, pull } = remaining;
    let text = match pull {
        Some(url) => format!(
            "on the source host, {url} stays open and `{branch}` stays: close and delete them there"
        ),
        None => format!("branch `{branch}` stays in {repo}: delete it there"),
    };
    StyledLine::from_text(&text)
}

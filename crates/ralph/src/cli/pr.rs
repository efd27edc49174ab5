//! `ralph pr`: prints the pull request of a run.

use clap::Args;
use ralph_app::AppError;
use ralph_app::results::{PullRequestReport, pull_request};

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use crate::terminal::lines::{field_line, lifecycle};
use crate::terminal::sanitize;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `pr`.
#[derive(Debug, Args)]
pub(super) struct PrArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the title, the branches and the text.
pub(super) async fn run(args: PrArgs, context: &Context) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&args.run.run)?;
    let mut state = dir.state()?;
    let report = pull_request(&dir, &mut state, &context.app).await?;
    let output = context.output();
    if args.json {
        output.print_json(&report)?;
        return Ok(ExitCode::Success);
    }
    output.print_lines(&head_lines(&report))?;
    if let Some(body) = &report.body {
        output.print_text(&format!("{}\n", readable(body)))?;
    }
    Ok(ExitCode::Success)
}

/// Returns the text without the comments that mark ralph's part of it.
fn readable(body: &str) -> String {
    let is_comment = |line: &&str| line.starts_with("<!--") && line.ends_with("-->");
    let lines: Vec<&str> = body.lines().filter(|line| !is_comment(line)).collect();
    sanitize::text(lines.join("\n").trim_end())
}

fn head_lines(report: &PullRequestReport) -> Vec<StyledLine> {
    let state = lifecycle::pull_state_name(report.state);
    let commit = report.commit.get(..10).unwrap_or(&report.commit);
    vec![
        StyledLine::new()
            .strong(&report.title)
            .quiet(&format!(" #{} ({state})", report.number)),
        field_line("run", report.run.as_str()),
        field_line("branch", &format!("{} → {}", report.head, report.base)),
        field_line("commit", commit),
        field_line(
            if report.body.is_some() {
                "record"
            } else {
                "url"
            },
            &report.url,
        ),
        StyledLine::new(),
    ]
}

//! `ralph merge`: merges the branch of a run into its base branch.

use clap::Args;
use ralph_app::AppError;
use ralph_app::results::{MergeConsent, MergeKind, MergeReport, merge_run};

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Also merge commits that no clean room has verified
    #[arg(long)]
    pub unverified: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Merges the branch and prints the result.
pub(super) async fn run(args: MergeArgs, context: &Context) -> Result<ExitCode, AppError> {
    let consent = if args.unverified {
        MergeConsent::Unverified
    } else {
        MergeConsent::VerifiedOnly
    };
    let report = merge_run(&args.run.run, consent, &context.app).await?;
    if args.json {
        context.output().print_json(&report)?;
    } else {
        context.output().print_lines(&lines(&report))?;
    }
    Ok(ExitCode::Success)
}

fn lines(report: &MergeReport) -> Vec<StyledLine> {
    let MergeReport { branch, base, .. } = report;
    let commit = report.commit.short();
    let text = match report.kind {
        MergeKind::FastForward => format!("`{base}` is at {commit} of `{branch}` now"),
        MergeKind::MergeCommit => format!("`{branch}` is merged into `{base}`, now at {commit}"),
        MergeKind::AlreadyMerged => format!("`{base}` already contains `{branch}`"),
    };
    let mut lines = vec![
        StyledLine::from_text("run ")
            .strong(report.run.as_str())
            .plain(": ")
            .plain(&text),
    ];
    if let Some(number) = report.pull {
        lines.push(StyledLine::from_text(&format!(
            "pull request #{number} is merged"
        )));
    }
    lines
}

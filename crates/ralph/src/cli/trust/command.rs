//! `ralph trust`: shows and approves the proposals of a repository.

use std::path::Path;

use ralph_app::AppError;
use ralph_app::checks::{review_project, reviewed_directory};
use ralph_app::config::{Approvals, ConfigLayers};
use ralph_app::format;
use ralph_app::planning::TASK_FILE;
use ralph_app::trust::{TrustReview, TrustReviewReport, refusal_error};
use serde_json::json;

use super::args::TrustArgs;
use super::lines::review_lines;
use crate::cli::context::Context;
use crate::cli::exit::ExitCode;
use crate::cli::questions::confirm_proposals;
use crate::terminal::styled_line::StyledLine;

/// Shows and approves the proposals of a repository, or lists or revokes approvals.
pub(in crate::cli) async fn run(args: TrustArgs, context: &Context) -> Result<ExitCode, AppError> {
    if args.action.list {
        return list_approvals(args.json, context);
    }
    let named = context
        .app
        .environment()
        .working_dir()
        .join(args.path.as_deref().unwrap_or(Path::new(".")));
    let directory = reviewed_directory(&named)?;
    let layers = ConfigLayers::for_directory(context.app.environment(), &directory);
    if args.action.revoke {
        return revoke(&layers, context);
    }
    let review = review_project(&named, &directory, &context.app).await?;
    decide(review, &args, (&layers, context))
}

fn decide(
    mut review: TrustReview,
    args: &TrustArgs,
    (layers, context): (&ConfigLayers, &Context),
) -> Result<ExitCode, AppError> {
    let is_pending = !review.pending.is_empty();
    if is_pending && (args.action.yes || !args.json && confirm_proposals(&review, "Approve?")) {
        context.app.state_dir()?;
        review.approve()?;
    }
    if args.json {
        context
            .output()
            .print_json(&TrustReviewReport::new(&review))?;
    } else {
        let lines = review_lines(&review);
        let first = if lines.is_empty() {
            " needs no approval"
        } else {
            ""
        };
        let first = StyledLine::new().strong(review.repository()).plain(first);
        context
            .output()
            .print_lines(&[vec![first], lines].concat())?;
    }
    // With `--json`, an error would be a second document.
    if !review.overreach.is_empty() && !args.json {
        return Err(refusal_error(&review, Path::new(TASK_FILE), layers));
    }
    Ok(if review.is_clear() {
        ExitCode::Success
    } else {
        ExitCode::Usage
    })
}

/// Revokes the approvals of a repository, regardless of its files.
fn revoke(layers: &ConfigLayers, context: &Context) -> Result<ExitCode, AppError> {
    let mut approvals = layers.approvals().clone();
    let count = approvals.revoke()?;
    let count = format::plural(count as u64, "approval", "approvals");
    let line =
        StyledLine::from_text(&format!("revoked {count} of ")).strong(approvals.repository());
    context.output().print_lines(&[line])?;
    Ok(ExitCode::Success)
}

fn list_approvals(is_json: bool, context: &Context) -> Result<ExitCode, AppError> {
    let records = Approvals::load_all(&context.app.environment().state_dir()?)?;
    let records: Vec<_> = records
        .into_iter()
        .filter(|record| !record.approved.is_empty())
        .collect();
    if is_json {
        context.output().print_json(&json!(records))?;
        return Ok(ExitCode::Success);
    }
    let mut lines = Vec::new();
    for record in records {
        lines.push(StyledLine::new().strong(&record.repository));
        lines.extend(record.approved.iter().map(|approved| {
            StyledLine::from_text(&format!(
                "  {}: {} = {}",
                approved.file, approved.key, approved.value
            ))
        }));
    }
    if lines.is_empty() {
        lines.push(StyledLine::from_text("no proposals are approved"));
    }
    context.output().print_lines(&lines)?;
    Ok(ExitCode::Success)
}

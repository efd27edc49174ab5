//! `ralph trust`: shows and approves the proposals of a repository.

use std::path::{Path, PathBuf};

use ralph_app::AppError;
use ralph_app::checks::load_project_config;
use ralph_app::config::{Approvals, ConfigLayers};
use ralph_app::format;
use ralph_app::planning::{self, TASK_FILE};
use ralph_app::trust::{self, ReviewScope, TrustReview, refusal_error};
use ralph_core::lint;
use ralph_core::repo_address::RepoAddress;
use ralph_core::task::TaskFile;
use ralph_engine::git::HostGit;
use serde_json::json;

use super::args::TrustArgs;
use super::lines::{review_json, review_lines};
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
    let directory = named_directory(&named)?;
    let layers = ConfigLayers::for_directory(context.app.environment(), &directory);
    if args.action.revoke {
        return revoke(&layers, context);
    }
    let task = named_task(&named, context)?;
    let mut review = TrustReview::from_files(&layers, ReviewScope::ALL)?;
    let git = context.app.git_read_only();
    if let Some((file, task)) = &task {
        let repository = task_repository(file, task, &git, context).await;
        let layers = (&layers, ReviewScope::ALL);
        review.add_task(file, &task.contract, repository.as_deref(), layers)?;
    }
    add_image(&mut review, &directory, task.as_ref(), &git).await?;
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
        context.output().print_json(&review_json(&review))?;
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

/// Returns the named directory, or that of the named task file.
fn named_directory(named: &Path) -> Result<PathBuf, AppError> {
    let directory = if named.is_dir() {
        named
    } else {
        named.parent().unwrap_or(named)
    };
    directory.canonicalize().map_err(|error| {
        AppError::usage(
            format!("cannot use `{}`", named.display()),
            error.to_string(),
            "name a repository, or a task file in one",
        )
    })
}

/// Returns the named task file, or that of the named directory if it has one. Rejects a file that a
/// run would reject.
fn named_task(named: &Path, context: &Context) -> Result<Option<(PathBuf, TaskFile)>, AppError> {
    let file = if named.is_dir() {
        named.join(TASK_FILE)
    } else {
        named.to_owned()
    };
    if named.is_dir() && file.symlink_metadata().is_err() {
        return Ok(None);
    }
    let (path, bytes) = planning::read_bytes(&file, &context.app)?;
    let report = lint::check(&bytes);
    match report.task {
        Some(task) => Ok(Some((path, task))),
        // The repository's other files can be reviewed without its task file.
        None if named.is_dir() => Ok(None),
        None => Err(AppError::usage(
            format!("cannot use the task file `{}`", file.display()),
            report
                .findings
                .first()
                .map(|finding| planning::describe_finding(finding).0)
                .unwrap_or_default(),
            format!("check it with `ralph lint {}`", file.display()),
        )),
    }
}

/// Returns the repository that a task names, if it is a local one that git can read.
async fn task_repository(
    file: &Path,
    task: &TaskFile,
    git: &HostGit,
    context: &Context,
) -> Option<PathBuf> {
    let url = task.contract.repo_url.as_ref()?.as_str();
    let named = match planning::parse_address(url) {
        Ok(RepoAddress::Path(path)) => path,
        Ok(RepoAddress::Remote(repo)) => {
            let repository = PathBuf::from(repo.to_string());
            return (!trust::is_origin(&repository, &context.app)).then_some(repository);
        }
        // Planning reports a repository that cannot be used, here and below.
        Err(_) => return None,
    };
    let path = context.app.environment().working_dir().join(named);
    let path = if path.is_dir() {
        path
    } else {
        file.parent()?.to_owned()
    };
    match planning::top_level(&path, git).await {
        Ok(root) => Some(root),
        Err(error) => {
            tracing::debug!(%error, "the review leaves out the task's repository");
            None
        }
    }
}

/// Adds the image of the commit that a run would start from; outside a repository, that of the
/// directory.
async fn add_image(
    review: &mut TrustReview,
    directory: &Path,
    task: Option<&(PathBuf, TaskFile)>,
    git: &HostGit,
) -> Result<(), AppError> {
    let branch = task.and_then(|(_, task)| task.contract.base_branch.as_ref());
    let branch = branch.map_or("HEAD", |branch| branch.as_str());
    if let Ok(root) = planning::top_level(directory, git).await {
        if let Some(commit) = planning::commit_at(&root, branch, git).await? {
            review
                .add_image(&root, &commit, (git, ReviewScope::ALL))
                .await;
        }
    } else {
        let config = load_project_config(directory);
        review.add_config(&config, ReviewScope::ALL);
    }
    Ok(())
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

//! `ralph trust`: shows what a repository proposes, and approves it.

use std::path::{Path, PathBuf};

use ralph_core::lint;
use ralph_core::net::Entry;
use ralph_core::task::TaskFile;
use ralph_core::trust::Proposal;
use ralph_engine::git::HostGit;
use serde_json::json;

use super::args::TrustArgs;
use super::gate::{ask, refusal};
use super::lines::{json, shown};
use super::review::{Effect, Review};
use crate::cli::args::TASK_FILE;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::cli::{planning, selftest};
use crate::config::{Approvals, Layers, load_settings};
use crate::terminal::format;
use crate::terminal::line::Line;

/// Shows, approves, lists or ends approvals.
pub(in crate::cli) async fn run(args: TrustArgs, context: &Context) -> Result<ExitCode, CliError> {
    if args.task.list {
        return list(args.json, context);
    }
    let named = context
        .environment()
        .directory()
        .join(args.path.as_deref().unwrap_or(Path::new(".")));
    let directory = directory(&named)?;
    let layers = Layers::at(context.environment(), &directory);
    if args.task.revoke {
        return revoke(&layers, context);
    }
    let task = task(&named, context)?;
    let mut review = Review::of_files(&layers, Effect::ALL)?;
    let git = context.git_to_look();
    if let Some((file, task)) = &task {
        let repository = repository(file, task, &git, context).await;
        let layers = (&layers, Effect::ALL);
        review.add_task(file, &task.contract, repository.as_deref(), layers)?;
    }
    add_image(&mut review, &directory, task.as_ref(), &git).await;
    decide(review, &args, (&layers, context))
}

fn decide(
    mut review: Review,
    args: &TrustArgs,
    (layers, context): (&Layers, &Context),
) -> Result<ExitCode, CliError> {
    let is_pending = !review.pending.is_empty();
    if is_pending && (args.task.yes || !args.json && ask(&review, "Approve?")) {
        context.state()?;
        review.approve()?;
    }
    if args.json {
        context.output().json(&json(&review))?;
    } else {
        let lines = shown(&review);
        let first = if lines.is_empty() {
            " needs no approval"
        } else {
            ""
        };
        let first = Line::new().strong(review.repository()).plain(first);
        context.output().lines(&[vec![first], lines].concat())?;
    }
    // With `--json` an error would be a second document.
    if !review.overreach.is_empty() && !args.json {
        return Err(refusal(&review, Path::new(TASK_FILE), layers));
    }
    Ok(if review.is_clear() {
        ExitCode::Success
    } else {
        ExitCode::Usage
    })
}

/// Returns the named directory, or that of the named task file.
fn directory(named: &Path) -> Result<PathBuf, CliError> {
    let directory = if named.is_dir() {
        named
    } else {
        named.parent().unwrap_or(named)
    };
    directory.canonicalize().map_err(|error| {
        CliError::usage(
            format!("cannot use `{}`", named.display()),
            error.to_string(),
            "name a repository, or a task file in one",
        )
    })
}

/// Returns the named task file, or that of the named directory if it has one. A file that a run
/// refuses to read is refused here, too.
fn task(named: &Path, context: &Context) -> Result<Option<(PathBuf, TaskFile)>, CliError> {
    let file = if named.is_dir() {
        named.join(TASK_FILE)
    } else {
        named.to_owned()
    };
    if named.is_dir() && file.symlink_metadata().is_err() {
        return Ok(None);
    }
    let (path, bytes) = planning::read_bytes(&file, context)?;
    let report = lint::check(&bytes);
    match report.task {
        Some(task) => Ok(Some((path, task))),
        // The repository's other files can be reviewed without its task file.
        None if named.is_dir() => Ok(None),
        None => Err(CliError::usage(
            format!("cannot use the task file `{}`", file.display()),
            report
                .findings
                .first()
                .map(|finding| planning::told(finding).0)
                .unwrap_or_default(),
            format!("check it with `ralph lint {}`", file.display()),
        )),
    }
}

/// Returns the repository that a task names.
async fn repository(
    file: &Path,
    task: &TaskFile,
    git: &HostGit,
    context: &Context,
) -> Option<PathBuf> {
    let url = task.contract.repo_url.as_ref()?.as_str();
    let path = planning::local_path(url, context.environment().directory()).ok()?;
    let path = if path.is_dir() {
        path
    } else {
        file.parent()?.to_owned()
    };
    planning::top_level(&path, git).await.ok()
}

/// Adds the image of the commit that a run would start from; outside of a repository, that of the
/// directory.
async fn add_image(
    review: &mut Review,
    directory: &Path,
    task: Option<&(PathBuf, TaskFile)>,
    git: &HostGit,
) {
    let branch = task.and_then(|(_, task)| task.contract.base_branch.as_ref());
    let branch = branch.map_or("HEAD", |branch| branch.as_str());
    if let Ok(root) = planning::top_level(directory, git).await {
        if let Some(commit) = planning::commit_at(&root, branch, git).await {
            review.add_image(&root, &commit, (git, Effect::ALL)).await;
        }
    } else {
        let config = selftest::project(directory);
        review.add_config(&config, Effect::ALL);
    }
}

/// Ends the approvals of a repository, whatever its files contain.
fn revoke(layers: &Layers, context: &Context) -> Result<ExitCode, CliError> {
    let mut approvals = layers.approvals().clone();
    let count = approvals.revoke()?;
    let count = format::plural(count as u64, "approval", "approvals");
    let line = Line::of(&format!("ended {count} of ")).strong(approvals.repository());
    context.output().lines(&[line])?;
    Ok(ExitCode::Success)
}

fn list(is_json: bool, context: &Context) -> Result<ExitCode, CliError> {
    let records = Approvals::all(&context.environment().state_dir()?);
    let records: Vec<_> = records
        .into_iter()
        .filter(|record| !record.approved.is_empty())
        .collect();
    if is_json {
        context.output().json(&json!(records))?;
        return Ok(ExitCode::Success);
    }
    let mut lines = Vec::new();
    for record in records {
        lines.push(Line::new().strong(&record.repository));
        lines.extend(record.approved.iter().map(|approved| {
            Line::of(&format!(
                "  {}: {} = {}",
                approved.file, approved.key, approved.value
            ))
        }));
    }
    if lines.is_empty() {
        lines.push(Line::of("no proposals are approved"));
    }
    context.output().lines(&lines)?;
    Ok(ExitCode::Success)
}

/// Approves the host that `ralph allow --project` listed, and the policy that gives the list its effect.
pub(in crate::cli) fn approve_host(host: &Entry, context: &Context) -> Result<(), CliError> {
    let layers = context.layers();
    let findings = load_settings(&layers)?.findings;
    let is_meant = |proposal: &Proposal| match proposal.key.as_str() {
        "sandbox.network.policy" => true,
        "sandbox.network.allowed" => Entry::parse(&proposal.value).as_ref() == Ok(host),
        _ => false,
    };
    let meant: Vec<_> = findings.proposals.into_iter().filter(is_meant).collect();
    if meant.is_empty() {
        return Ok(());
    }
    context.state()?;
    let mut approvals = layers.approvals().clone();
    Ok(approvals.add(&meant)?)
}

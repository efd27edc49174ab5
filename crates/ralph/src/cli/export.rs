//! `ralph export`: the branch of a run as a directory that is safe to look at.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use ralph_engine::git::GitError;
use ralph_engine::store::RunDir;

use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use super::steer_args::ExportArgs;
use crate::terminal::line::{Line, Tone};

/// Writes the branch, or the changes, into an empty directory.
pub(super) async fn run(args: ExportArgs, context: &Context) -> Result<ExitCode, CliError> {
    let dir = context.find(&args.run)?;
    let state = dir.state()?;
    let target = context.environment().directory().join(&args.directory);
    let target = std::path::absolute(&target).unwrap_or(target);
    prepare(&target)?;
    let repo = context.wiring()?.git()?.repo(dir.repo());
    let (branch, head) = (&state.plan.branch, &state.head);
    let written = if args.patch {
        let patch = repo.patch(&state.plan.base, head).await;
        let patch = patch.map_err(|error| failed(&dir, &error))?;
        let file = target.join(format!("{}.patch", state.plan.task_id));
        fs::write(&file, patch).map_err(|error| unusable(&file, error.to_string()))?;
        format!(
            "the changes up to {} are in `{}`",
            head.short(),
            file.display()
        )
    } else {
        let exported = repo.export(branch, &target).await;
        exported.map_err(|error| failed(&dir, &error))?;
        format!(
            "`{branch}` at {} is in `{}`",
            head.short(),
            target.display()
        )
    };
    let note = "its files are the work of a model: building or testing them runs that work on this machine";
    context.output().lines(&[
        Line::of("run ")
            .strong(state.plan.run.as_str())
            .plain(": ")
            .folded(Tone::Plain, &written),
        Line::of("note: ").plain(note),
    ])?;
    Ok(ExitCode::Success)
}

/// Makes the directory, or checks that it is empty.
fn prepare(target: &Path) -> Result<(), CliError> {
    match fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(unusable(target, "it is not empty".into())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(target).map_err(|error| unusable(target, error.to_string()))
        }
        Err(error) => Err(unusable(target, error.to_string())),
    }
}

fn unusable(target: &Path, why: String) -> CliError {
    CliError::usage(
        format!("cannot export to `{}`", target.display()),
        why,
        "name a directory that is empty or does not exist",
    )
}

fn failed(dir: &RunDir, error: &GitError) -> CliError {
    CliError::runtime(
        format!("cannot export from `{}`", dir.repo().display()),
        error.to_string(),
        error.hint(),
    )
}

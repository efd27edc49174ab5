//! `ralph export`: writes the branch of a run, or its changes as a patch, to an empty directory.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use clap::Args;
use ralph_app::AppError;
use ralph_engine::git::GitError;
use ralph_engine::store::RunDir;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::LeadingRunArg;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    pub run: LeadingRunArg,
    /// The directory, which must be empty or not exist
    #[arg(value_name = "DIR")]
    pub directory: Option<String>,
    /// Write the changes as one patch file instead of a checkout
    #[arg(long)]
    pub patch: bool,
}

/// Writes the branch, or the changes, to an empty directory.
pub(super) async fn run(args: ExportArgs, context: &Context) -> Result<ExitCode, AppError> {
    let (run, directory) = args.run.with_value(args.directory, ("export", "DIR"))?;
    let dir = context.app.find_run(&run.run)?;
    let state = dir.state()?;
    let target = context.app.environment().working_dir().join(directory);
    let target = std::path::absolute(&target).unwrap_or(target);
    prepare_target(&target)?;
    let repo = context.app.providers()?.git()?.repo(dir.repo());
    let (branch, head) = (&state.plan.branch, &state.head);
    let summary = if args.patch {
        let patch = repo.patch(&state.plan.base, head).await;
        let patch = patch.map_err(|error| export_failed(&dir, &error))?;
        let file = target.join(format!("{}.patch", state.plan.task_id));
        fs::write(&file, patch).map_err(|error| unusable_target(&file, error.to_string()))?;
        format!(
            "the changes up to {} are in `{}`",
            head.short(),
            file.display()
        )
    } else {
        let exported = repo.export(branch, &target).await;
        exported.map_err(|error| export_failed(&dir, &error))?;
        format!(
            "`{branch}` at {} is in `{}`",
            head.short(),
            target.display()
        )
    };
    let note =
        "its files were written by a model: building or testing them runs its code on this machine";
    context.output().print_lines(&[
        StyledLine::from_text("run ")
            .strong(state.plan.run.as_str())
            .plain(": ")
            .wrapped(Tone::Plain, &summary),
        StyledLine::from_text("note: ").plain(note),
    ])?;
    Ok(ExitCode::Success)
}

/// Creates the directory, or checks that it is empty.
fn prepare_target(target: &Path) -> Result<(), AppError> {
    match fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(unusable_target(target, "it is not empty".into())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(target).map_err(|error| unusable_target(target, error.to_string()))
        }
        Err(error) => Err(unusable_target(target, error.to_string())),
    }
}

fn unusable_target(target: &Path, why: String) -> AppError {
    AppError::usage(
        format!("cannot export to `{}`", target.display()),
        why,
        "name a directory that is empty or does not exist",
    )
}

fn export_failed(dir: &RunDir, error: &GitError) -> AppError {
    AppError::runtime(
        format!("cannot export from `{}`", dir.repo().display()),
        error.to_string(),
        error.hint(),
    )
}

//! `ralph init`: writes a task file to start from.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use clap::Args;
use ralph_app::AppError;
use ralph_app::config::ModelProfiles;
use ralph_app::planning::TASK_FILE;
use ralph_core::templates;

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
    /// Write config/models.yaml too
    #[arg(long)]
    pub models: bool,
}

/// Writes missing files; with `--force` also overwrites existing ones.
pub(super) fn run(args: &InitArgs, context: &Context) -> Result<ExitCode, AppError> {
    let mut files = vec![(TASK_FILE, templates::TASK)];
    if args.models {
        files.push((ModelProfiles::FILE, templates::MODELS));
    }
    let directory = context.app.environment().working_dir();
    let mut lines = Vec::new();
    let mut kept = Vec::new();
    for (name, text) in &files {
        match write(&directory.join(name), text, args.force) {
            Ok(()) => lines.push(StyledLine::from_text("wrote ").strong(name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => kept.push(*name),
            Err(error) => {
                return Err(AppError::runtime(
                    format!("cannot write `{name}`"),
                    error.to_string(),
                    "change to a directory you can write to, then try again",
                ));
            }
        }
    }
    if kept.len() == files.len() {
        return Err(AppError::runtime(
            format!("will not overwrite `{}`", kept.join("`, `")),
            "it exists",
            "overwrite it with `--force`, or remove it",
        ));
    }
    lines.extend(
        kept.iter()
            .map(|name| StyledLine::from_text("kept ").strong(name)),
    );
    lines.extend(next_steps());
    context.output().print_lines(&lines)?;
    Ok(ExitCode::Success)
}

fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    options.open(path)?.write_all(text.as_bytes())
}

fn next_steps() -> Vec<StyledLine> {
    vec![
        StyledLine::new(),
        StyledLine::from_text("next:"),
        StyledLine::from_text("  1. describe the task and how to check it: edit ")
            .strong(TASK_FILE),
        StyledLine::from_text("  2. check the task file: ").strong("ralph lint"),
        StyledLine::from_text("  3. start the run: ").strong("ralph run"),
        StyledLine::new(),
        StyledLine::new().quiet("also read if they exist:"),
        StyledLine::new()
            .quiet("  config/models.yaml  model profiles; `ralph init --models` writes it"),
        StyledLine::new().quiet("  ralph.toml          settings of the project"),
        StyledLine::new()
            .quiet("  .env                credentials; environment variables take precedence"),
    ]
}

//! `ralph init`: writes a task file for the repository and the machine it finds.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use clap::Args;
use ralph_app::AppError;
use ralph_app::config::ModelProfiles;
use ralph_app::new_task::{
    ProjectInspection, RepositoryStatus, SandboxStatus, WorkerChoice, missing_worker_fix,
    parse_sentence,
};
use ralph_app::planning::TASK_FILE;
use ralph_core::ecosystem::DetectedProject;
use ralph_core::templates;

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Describe the task in one sentence
    #[arg(short = 'p', long, value_name = "SENTENCE", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// Write a template with every common key instead
    #[arg(long, conflicts_with = "prompt")]
    pub full: bool,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
    /// Write config/models.yaml too
    #[arg(long)]
    pub models: bool,
}

/// A file to write.
struct NewFile {
    name: &'static str,
    text: String,
}

/// Writes missing files; with `--force` also overwrites existing ones.
pub(super) async fn run(args: &InitArgs, context: &Context) -> Result<ExitCode, AppError> {
    let sentence = args.prompt.as_deref().map(parse_sentence).transpose()?;
    let directory = context.app.environment().working_dir();
    let has_task = directory.join(TASK_FILE).symlink_metadata().is_ok();
    let mut lines = Vec::new();
    let mut next = next_with_template();
    let mut files = Vec::new();
    let mut kept = Vec::new();
    if has_task && !args.force {
        kept.push(TASK_FILE);
    } else if args.full {
        files.push(NewFile {
            name: TASK_FILE,
            text: templates::TASK.to_owned(),
        });
    } else {
        let found = ProjectInspection::of_working_dir(&context.app).await?;
        lines.extend(inspection_lines(&found));
        next = next_with_inspection(&found, args);
        files.push(NewFile {
            name: TASK_FILE,
            text: found.task_text(sentence, &context.app)?,
        });
    }
    if args.models {
        files.push(NewFile {
            name: ModelProfiles::FILE,
            text: templates::MODELS.to_owned(),
        });
    }
    let written = write_missing(&files, directory, args.force, &mut kept)?;
    if written.is_empty() {
        return Err(AppError::runtime(
            format!("will not overwrite `{}`", kept.join("`, `")),
            "it exists",
            "overwrite it with `--force`, or remove it",
        ));
    }
    let written = written.iter();
    lines.extend(written.map(|name| StyledLine::from_text("wrote ").strong(name)));
    let kept = kept.iter();
    lines.extend(kept.map(|name| StyledLine::from_text("kept ").strong(name)));
    lines.extend(next);
    context.output().print_lines(&lines)?;
    Ok(ExitCode::Success)
}

/// Writes files and returns the names of the written ones; adds those that exist to `kept`.
fn write_missing(
    files: &[NewFile],
    directory: &Path,
    force: bool,
    kept: &mut Vec<&'static str>,
) -> Result<Vec<&'static str>, AppError> {
    let mut written = Vec::new();
    for NewFile { name, text } in files {
        match write(&directory.join(name), text, force) {
            Ok(()) => written.push(*name),
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
    Ok(written)
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

/// Describes what was found, one line each.
fn inspection_lines(found: &ProjectInspection) -> Vec<StyledLine> {
    let line = |name: &str, text: String| StyledLine::new().quiet(name).wrapped(Tone::Plain, &text);
    vec![
        line("repository  ", describe_repository(&found.repository)),
        line("language    ", describe_languages(&found.project)),
        line("tests       ", describe_tests(&found.project)),
        line("sandbox     ", describe_sandbox(&found.sandbox)),
        line("worker      ", describe_worker(&found.worker)),
    ]
}

fn describe_repository(repository: &RepositoryStatus) -> String {
    match repository {
        RepositoryStatus::Ready {
            path,
            default_branch,
        } => format!("{}, branch `{default_branch}`", path.display()),
        RepositoryStatus::Unusable(error) => error.to_string(),
    }
}

fn describe_languages(project: &DetectedProject) -> String {
    if project.languages.is_empty() {
        return "none recognised".to_owned();
    }
    project.languages.join(", ")
}

fn describe_tests(project: &DetectedProject) -> String {
    let Some((first, others)) = project.test_commands.split_first() else {
        return format!("no test command found: fill in `test_command` in {TASK_FILE}");
    };
    let others: Vec<String> = others
        .iter()
        .map(|test| format!("`{}`", test.command))
        .collect();
    let also = if others.is_empty() {
        String::new()
    } else {
        format!("; also found: {}", others.join(", "))
    };
    format!("`{}` ({}){also}", first.command, first.origin)
}

fn describe_sandbox(sandbox: &SandboxStatus) -> String {
    match sandbox {
        SandboxStatus::Configured(name) => format!("{name}, from your configuration"),
        SandboxStatus::Docker => "docker: a Docker Engine answers".to_owned(),
        SandboxStatus::Local(error) => {
            let why = if error.why.is_empty() {
                &error.what
            } else {
                &error.why
            };
            format!("local, without isolation; docker cannot be used: {why}")
        }
    }
}

fn describe_worker(worker: &WorkerChoice) -> String {
    match worker {
        WorkerChoice::Agent { name, credential } => {
            format!("agent `{name}` with its credential ({credential})")
        }
        WorkerChoice::Model {
            profile,
            model,
            variable,
            ..
        } => {
            let key = variable.as_ref().map_or_else(
                || "it needs no key".to_owned(),
                |variable| format!("key in `{variable}`"),
            );
            format!("model `{model}` of profile `{profile}` ({key})")
        }
        WorkerChoice::Missing { variables } => {
            format!("none found: {}", missing_worker_fix(variables))
        }
    }
}

/// Returns the next commands for a task file that was made for the project.
fn next_with_inspection(found: &ProjectInspection, args: &InitArgs) -> Vec<StyledLine> {
    let mut steps = Vec::new();
    if let RepositoryStatus::Unusable(error) = &found.repository {
        steps.push(("make the repository usable: ", error.fix.as_str()));
    }
    if found.project.test_commands.is_empty() {
        steps.push((
            "fill in `test_command`, the command that runs the tests: edit ",
            TASK_FILE,
        ));
    }
    if matches!(found.worker, WorkerChoice::Missing { .. }) {
        steps.push(("store a credential: ", "ralph store-token"));
    }
    if args.prompt.is_none() {
        steps.push(("describe what you want: edit ", TASK_FILE));
    }
    steps.push(("see the plan: ", "ralph run --dry-run"));
    steps.push(("start the run: ", "ralph run"));
    numbered_steps(&steps)
}

/// Returns the next commands for the template.
fn next_with_template() -> Vec<StyledLine> {
    let mut lines = numbered_steps(&[
        ("describe the task and how to check it: edit ", TASK_FILE),
        ("check the task file: ", "ralph lint"),
        ("start the run: ", "ralph run"),
    ]);
    lines.extend([
        StyledLine::new(),
        StyledLine::new().quiet("also read if they exist:"),
        StyledLine::new()
            .quiet("  config/models.yaml  model profiles; `ralph init --models` writes it"),
        StyledLine::new().quiet("  ralph.toml          settings of the project"),
        StyledLine::new()
            .quiet("  .env                credentials; environment variables take precedence"),
    ]);
    lines
}

/// Numbers steps, each with an explanation and a command or file.
fn numbered_steps(steps: &[(&str, &str)]) -> Vec<StyledLine> {
    let mut lines = vec![StyledLine::new(), StyledLine::from_text("next:")];
    for (number, (text, target)) in (1..).zip(steps) {
        lines.push(StyledLine::from_text(&format!("  {number}. {text}")).strong(target));
    }
    lines
}

//! What the commands on images share.

use ralph_core::image::ImageName;
use ralph_core::ports::ProviderProblem;

use super::args::{ImageArgs, ImageCommand};
use super::progress::show_progress;
use super::{build, pull, status};
use crate::cli::container;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::config::Settings;
use crate::providers::image::{DockerImages, ImageBase, ImageError, ImageProgress};
use crate::terminal::styled_line::StyledLine;
use crate::terminal::{OutputMode, ProgressDisplay};

/// Does what was typed.
pub(in crate::cli) async fn run(args: ImageArgs, context: &Context) -> Result<ExitCode, CliError> {
    let settings = context.settings()?;
    match args.command {
        ImageCommand::Build(args) => build::run(args, &settings, context).await,
        ImageCommand::Pull(args) => pull::run(args, &settings, context).await,
        ImageCommand::Status(args) => status::run(args, &settings, context).await,
    }
}

/// Returns what a project's sandboxes start from, by its settings.
pub(super) fn configured_base(settings: &Settings) -> Result<ImageBase, CliError> {
    let sandbox = &settings.sandbox;
    ImageBase::from_settings(&sandbox.image, &sandbox.base_image).map_err(|error| {
        CliError::usage(
            "`ralph.toml` names an image that cannot be one",
            error.to_string(),
            "correct `image` and `base_image` under `[sandbox]`",
        )
    })
}

/// Returns what the agents' images are built on, if the settings say.
pub(super) fn agent_base_image(settings: &Settings) -> Result<Option<ImageName>, CliError> {
    let mut settings = settings.clone();
    ImageBase::AUTO.clone_into(&mut settings.sandbox.image);
    Ok(match configured_base(&settings)? {
        ImageBase::Agent { on } => on,
        ImageBase::Named(_) => None,
    })
}

/// Connects to the engine that runs would use, too.
pub(super) async fn connect_images(
    settings: &Settings,
    context: &Context,
) -> Result<DockerImages, CliError> {
    let host = container::find_docker_engine(settings, context).await?;
    let connected = context.providers()?.images(host.as_deref()).await;
    connected.map_err(|error| problem_error(&error.problem()))
}

/// Work with an image, shown on standard output.
pub(super) struct ImageProgressOutput<'a> {
    context: &'a Context,
    work: ProgressDisplay,
}

impl<'a> ImageProgressOutput<'a> {
    /// Shows it as it fits standard output and the settings.
    pub(super) fn new(context: &'a Context, settings: &Settings) -> Self {
        Self::with_mode(context, context.view_mode(false, settings))
    }

    /// Shows it in this way.
    pub(super) fn with_mode(context: &'a Context, mode: OutputMode) -> Self {
        Self {
            context,
            work: ProgressDisplay::new(Box::new(std::io::stdout()), mode),
        }
    }

    /// Shows one thing that was told.
    pub(super) fn show(&mut self, progress: ImageProgress) {
        show_progress(&mut self.work, progress);
    }

    /// Shows a line that stays.
    pub(super) fn line(&self, line: &StyledLine) {
        self.work.line(line);
    }

    /// Returns what went wrong, after showing the end of a build that was hidden so far.
    pub(super) fn into_error(self, error: &ImageError) -> CliError {
        let was_hidden = self.work.has_spinner();
        drop(self.work);
        if was_hidden {
            let lines: Vec<StyledLine> = error
                .tail()
                .iter()
                .map(|line| StyledLine::from_text(line).indented())
                .collect();
            self.context.output().print_stderr_lines(&lines);
        }
        problem_error(&error.problem())
    }
}

/// Turns a problem into a line with three parts.
pub(super) fn problem_error(problem: &ProviderProblem) -> CliError {
    let (what, why) = problem
        .what
        .split_once(": ")
        .unwrap_or((&problem.what, "the Docker Engine has nothing of that name"));
    CliError::runtime(what, why, &problem.fix)
}

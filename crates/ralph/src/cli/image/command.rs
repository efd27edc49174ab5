//! What the commands on images share.

use ralph_core::image::ImageName;
use ralph_core::ports::Problem;

use super::args::{ImageArgs, ImageCommand};
use super::show::show;
use super::{build, pull, status};
use crate::cli::container;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::config::Settings;
use crate::terminal::line::Line;
use crate::terminal::{Mode, Work};
use crate::wire::image::{Base, ImageError, Images, Progress};

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
pub(super) fn base(settings: &Settings) -> Result<Base, CliError> {
    let sandbox = &settings.sandbox;
    Base::of_settings(&sandbox.image, &sandbox.base_image).map_err(|error| {
        CliError::usage(
            "`ralph.toml` names an image that cannot be one",
            error.to_string(),
            "correct `image` and `base_image` under `[sandbox]`",
        )
    })
}

/// Returns what the agents' images are built on, if the settings say.
pub(super) fn built_on(settings: &Settings) -> Result<Option<ImageName>, CliError> {
    let mut settings = settings.clone();
    Base::AUTO.clone_into(&mut settings.sandbox.image);
    Ok(match base(&settings)? {
        Base::Agent { on } => on,
        Base::Named(_) => None,
    })
}

/// Connects to the engine that runs would use, too.
pub(super) async fn images(settings: &Settings, context: &Context) -> Result<Images, CliError> {
    let host = container::engine(settings, context).await?;
    let connected = context.wiring()?.images(host.as_deref()).await;
    connected.map_err(|error| told(&error.problem()))
}

/// Work with an image, shown on standard output.
pub(super) struct Shown<'a> {
    context: &'a Context,
    work: Work,
}

impl<'a> Shown<'a> {
    /// Shows it as it fits standard output and the settings.
    pub(super) fn new(context: &'a Context, settings: &Settings) -> Self {
        Self::with(context, context.view_mode(false, settings))
    }

    /// Shows it in this way.
    pub(super) fn with(context: &'a Context, mode: Mode) -> Self {
        Self {
            context,
            work: Work::new(Box::new(std::io::stdout()), mode),
        }
    }

    /// Shows one thing that was told.
    pub(super) fn take(&mut self, progress: Progress) {
        show(&mut self.work, progress);
    }

    /// Shows a line that stays.
    pub(super) fn line(&self, line: &Line) {
        self.work.line(line);
    }

    /// Returns what went wrong, after showing the end of a build that was hidden so far.
    pub(super) fn failed(self, error: &ImageError) -> CliError {
        let was_hidden = self.work.has_spinner();
        drop(self.work);
        if was_hidden {
            let lines: Vec<Line> = error
                .tail()
                .iter()
                .map(|line| Line::of(line).indented())
                .collect();
            self.context.output().complain(&lines);
        }
        told(&error.problem())
    }
}

/// Turns a problem into a line with three parts.
pub(super) fn told(problem: &Problem) -> CliError {
    let (what, why) = problem
        .what
        .split_once(": ")
        .unwrap_or((&problem.what, "the Docker Engine has nothing of that name"));
    CliError::runtime(what, why, &problem.fix)
}

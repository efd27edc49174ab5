//! `ralph image pull`: gets an image from its registry.

use ralph_core::image::{AgentImage, ImageName, default_base};

use super::args::PullArgs;
use super::command::{self, Shown};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::config::Settings;
use crate::terminal::line::{Line, Tone};
use crate::wire::image::Base;

/// Pulls an image, unless it is here and the settings say that this is enough.
pub(super) async fn run(
    args: PullArgs,
    settings: &Settings,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let image = match args.image {
        Some(image) => image,
        None => wanted(&command::base(settings)?)?,
    };
    let images = command::images(settings, context).await?;
    let mut shown = Shown::new(context, settings);
    let is_enough = settings.sandbox.use_local_image && !args.force;
    let is_here = images
        .exists(&image)
        .await
        .map_err(|error| command::told(&error.problem()))?;
    if is_enough && is_here {
        shown.line(
            &Line::of("image ")
                .strong(image.as_str())
                .plain(" is here already; --force pulls it anyway"),
        );
        return Ok(ExitCode::Success);
    }
    let mut watcher = |progress| shown.take(progress);
    if let Err(error) = images.pull(&image, &mut watcher).await {
        return Err(shown.failed(&error));
    }
    shown.line(
        &Line::new()
            .with(Tone::Good, "pulled ")
            .strong(image.as_str()),
    );
    Ok(ExitCode::Success)
}

/// Returns the image that the settings name, or the one that the agents' images are built on.
fn wanted(base: &Base) -> Result<ImageName, CliError> {
    match base {
        Base::Named(image) | Base::Agent { on: Some(image) } => Ok(image.clone()),
        Base::Agent { on: None } => {
            let name = default_base(AgentImage::Plain.dockerfile()).unwrap_or_default();
            ImageName::parse(name).map_err(|error| {
                CliError::runtime(
                    "cannot tell which image to pull",
                    error.to_string(),
                    "use --image",
                )
            })
        }
    }
}

//! `ralph image pull`: gets an image from its registry.

use ralph_core::image::{AgentImage, ImageName, default_base};

use super::args::PullArgs;
use super::command::{self, ImageProgressOutput};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::config::Settings;
use crate::providers::image::ImageBase;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Pulls an image, unless it is here and the settings say that this is enough.
pub(super) async fn run(
    args: PullArgs,
    settings: &Settings,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let image = match args.image {
        Some(image) => image,
        None => requested_image(&command::configured_base(settings)?)?,
    };
    let images = command::connect_images(settings, context).await?;
    let mut shown = ImageProgressOutput::new(context, settings);
    let is_enough = settings.sandbox.use_local_image && !args.force;
    let is_here = images
        .exists(&image)
        .await
        .map_err(|error| command::problem_error(&error.problem()))?;
    if is_enough && is_here {
        shown.line(
            &StyledLine::from_text("image ")
                .strong(image.as_str())
                .plain(" is here already; --force pulls it anyway"),
        );
        return Ok(ExitCode::Success);
    }
    let mut watcher = |progress| shown.show(progress);
    if let Err(error) = images.pull(&image, &mut watcher).await {
        return Err(shown.into_error(&error));
    }
    shown.line(
        &StyledLine::new()
            .span(Tone::Good, "pulled ")
            .strong(image.as_str()),
    );
    Ok(ExitCode::Success)
}

/// Returns the image that the settings name, or the one that the agents' images are built on.
fn requested_image(base: &ImageBase) -> Result<ImageName, CliError> {
    match base {
        ImageBase::Named(image) | ImageBase::Agent { on: Some(image) } => Ok(image.clone()),
        ImageBase::Agent { on: None } => {
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

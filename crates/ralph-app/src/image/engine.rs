//! The engine that stores the images, and the base image of the settings.

use ralph_core::image::ImageName;
use ralph_core::ports::ProviderProblem;

use crate::app::App;
use crate::config::Settings;
use crate::error::AppError;
use crate::planning::container;
use crate::providers::image::{DockerImages, ImageBase};

/// Returns the image that a project's sandboxes start from, according to its settings.
pub(crate) fn configured_base(settings: &Settings) -> Result<ImageBase, AppError> {
    let sandbox = &settings.sandbox;
    ImageBase::from_settings(&sandbox.image, &sandbox.base_image).map_err(|error| {
        AppError::usage(
            "invalid image name in `ralph.toml`",
            error.to_string(),
            "correct `image` and `base_image` under `[sandbox]`",
        )
    })
}

/// Returns the base of the agents' images, if the settings name one.
pub(crate) fn agent_base_image(settings: &Settings) -> Result<Option<ImageName>, AppError> {
    let mut settings = settings.clone();
    ImageBase::AUTO.clone_into(&mut settings.sandbox.image);
    Ok(match configured_base(&settings)? {
        ImageBase::Agent { on } => on,
        ImageBase::Named(_) => None,
    })
}

/// Connects to the engine that runs also use.
pub(crate) async fn connect_images(
    settings: &Settings,
    app: &App,
) -> Result<DockerImages, AppError> {
    let host = container::find_docker_engine(settings, app).await?;
    let connected = app.providers()?.images(host.as_deref()).await;
    connected.map_err(|error| problem_error(&error.problem()))
}

/// Converts a problem to an error. The text after the first `: ` is the cause.
pub(crate) fn problem_error(problem: &ProviderProblem) -> AppError {
    let (what, why) = problem.what.split_once(": ").unwrap_or((&problem.what, ""));
    AppError::runtime(what, why, &problem.fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_comes_from_the_problem() {
        for (what, expected) in [
            (
                "cannot pull: no space left",
                "cannot pull — no space left — fix it",
            ),
            ("there is no image `x`", "there is no image `x` — fix it"),
        ] {
            let problem = ProviderProblem {
                what: what.into(),
                fix: "fix it".into(),
            };
            assert_eq!(problem_error(&problem).to_string(), expected);
        }
    }
}

//! Pulls images.

use ralph_core::image::{AgentImage, ImageName, default_base};

use super::ImageProgressSink;
use super::engine::{configured_base, connect_images, problem_error};
use super::ensure::build_error;
use crate::app::App;
use crate::error::AppError;
use crate::providers::image::{DockerImages, ImageBase};

/// A prepared pull.
pub struct ImagePull {
    pub image: ImageName,
    /// Whether the engine already has an image that the settings accept.
    pub is_satisfied: bool,
    images: DockerImages,
}

impl ImagePull {
    /// Connects to the engine and checks whether the image must be pulled. The default is the image
    /// of the settings.
    pub async fn prepare(
        image: Option<ImageName>,
        force: bool,
        app: &App,
    ) -> Result<Self, AppError> {
        let settings = &app.settings()?;
        let image = match image {
            Some(image) => image,
            None => requested_image(&configured_base(settings)?)?,
        };
        let images = connect_images(settings, app).await?;
        let exists = images.exists(&image).await;
        let exists = exists.map_err(|error| problem_error(&error.problem()))?;
        Ok(Self {
            image,
            is_satisfied: exists && settings.sandbox.use_local_image && !force,
            images,
        })
    }

    /// Pulls the image.
    pub async fn run(&self, progress: ImageProgressSink<'_>) -> Result<(), AppError> {
        let pulled = self.images.pull(&self.image, progress).await;
        pulled.map_err(|error| build_error(&error))
    }
}

/// Returns the image of the settings, or the base of the agents' images.
fn requested_image(base: &ImageBase) -> Result<ImageName, AppError> {
    match base {
        ImageBase::Named(image) | ImageBase::Agent { on: Some(image) } => Ok(image.clone()),
        ImageBase::Agent { on: None } => {
            let name = default_base(AgentImage::Plain.dockerfile()).unwrap_or_default();
            ImageName::parse(name).map_err(|error| {
                AppError::runtime(
                    "cannot determine which image to pull",
                    error.to_string(),
                    "use --image",
                )
            })
        }
    }
}

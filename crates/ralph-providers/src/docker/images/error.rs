//! Errors of image operations.

use ralph_core::image::{ImageName, InvalidImageName, ProjectLayerError};
use ralph_core::ports::ProviderProblem;

use crate::docker::DockerError;

/// Why an image is not available.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The Docker Engine failed.
    #[error(transparent)]
    Engine(#[from] DockerError),
    /// The project's configuration does not define a valid image.
    #[error(transparent)]
    Config(#[from] ProjectLayerError),
    /// An image name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidImageName),
    /// A step of the build failed.
    #[error("cannot build image `{image}`: {why}")]
    Build {
        image: ImageName,
        why: String,
        /// The last lines of the build output.
        tail: Vec<String>,
    },
    /// The image could not be pulled.
    #[error("cannot pull image `{image}`: {why}")]
    Pull { image: ImageName, why: String },
    /// A local file could not be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        path: String,
        source: std::io::Error,
    },
}

impl ImageError {
    /// Returns the problem and its fix.
    pub fn problem(&self) -> ProviderProblem {
        let fix = match self {
            Self::Engine(error) => return error.problem(),
            Self::Config(_) => "correct the file, and commit it".to_owned(),
            Self::Name(_) => "correct the name".to_owned(),
            Self::Build { .. } => {
                "check the last lines of the build output, then try again".to_owned()
            }
            Self::Pull { image, .. } => format!(
                "check the name and the network; if the registry needs a login, run `docker pull {image}`"
            ),
            Self::Read { .. } => "make it readable, then try again".to_owned(),
        };
        ProviderProblem {
            what: self.to_string(),
            fix,
        }
    }

    /// Returns the last output lines of a failed build.
    pub fn tail(&self) -> &[String] {
        match self {
            Self::Build { tail, .. } => tail,
            Self::Engine(_)
            | Self::Config(_)
            | Self::Name(_)
            | Self::Pull { .. }
            | Self::Read { .. } => &[],
        }
    }
}

//! What can go wrong with an image.

use ralph_core::image::{ImageName, InvalidImageName, ProjectLayerError};
use ralph_core::ports::ProviderProblem;

use crate::docker::DockerError;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The engine did not do it.
    #[error(transparent)]
    Engine(#[from] DockerError),
    /// The project's files do not say how its image is made.
    #[error(transparent)]
    Config(#[from] ProjectLayerError),
    /// A name is no image's.
    #[error(transparent)]
    Name(#[from] InvalidImageName),
    /// A step of the build failed.
    #[error("cannot build image `{image}`: {why}")]
    Build {
        /// The image.
        image: ImageName,
        /// What the engine says.
        why: String,
        /// The last lines that the build printed.
        tail: Vec<String>,
    },
    /// The registry did not give it.
    #[error("cannot pull image `{image}`: {why}")]
    Pull {
        /// The image.
        image: ImageName,
        /// What the registry or the way to it says.
        why: String,
    },
    /// A file on this machine cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
}

impl ImageError {
    /// Returns what is wrong and what to do about it.
    pub fn problem(&self) -> ProviderProblem {
        let fix = match self {
            Self::Engine(error) => return error.problem(),
            Self::Config(_) => "correct the file, and commit it".to_owned(),
            Self::Name(_) => "correct the name".to_owned(),
            Self::Build { .. } => "look at the last lines of the build, then try again".to_owned(),
            Self::Pull { image, .. } => format!(
                "look at the name and the network; if it needs a login, get it with `docker pull {image}`"
            ),
            Self::Read { .. } => "make it readable, then try again".to_owned(),
        };
        ProviderProblem {
            what: self.to_string(),
            fix,
        }
    }

    /// Returns the last lines that a failed build printed.
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

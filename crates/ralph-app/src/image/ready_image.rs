//! Finds the image of Docker sandboxes and its platform.

use std::fmt;

use ralph_core::ports::ProviderProblem;
use ralph_guest::available;
use ralph_providers::docker::{DockerEngine, DockerError, DockerInfo, go_architecture};

/// An image that sandboxes can start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadyImage {
    pub(crate) name: String,
    /// The digest of the image.
    id: String,
    /// The size on the engine's disk, in bytes.
    size: u64,
}

impl fmt::Display for ReadyImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.id.trim_start_matches("sha256:");
        let short = digest.get(..12).unwrap_or(digest);
        let megabytes = self.size / 1_000_000;
        write!(f, "{} ({short}, {megabytes} MB)", self.name)
    }
}

/// Finds the image on an engine. The error for a missing image includes how to get it.
pub(crate) async fn find_image(
    engine: &DockerEngine,
    facts: &DockerInfo,
    name: &str,
) -> Result<ReadyImage, ProviderProblem> {
    let inspection = engine.api().inspect_image(name);
    let image = match engine.call("inspect an image", inspection).await {
        Ok(image) => image,
        Err(error) => return Err(with_requested_name(error, name).problem()),
    };
    let architecture = image.architecture.unwrap_or_default();
    if !architecture.is_empty() && go_architecture(&architecture) != facts.architecture {
        return Err(DockerError::WrongArchitecture {
            image: name.to_owned(),
            has: architecture,
            needs: facts.architecture.clone(),
        }
        .problem());
    }
    Ok(ReadyImage {
        name: name.to_owned(),
        id: image.id.unwrap_or_default(),
        size: image
            .size
            .and_then(|size| available(u64::try_from(size)))
            .unwrap_or(0),
    })
}

/// Replaces the name in the error: an engine names a missing image by its digest or with a tag
/// added, but users know the name that they requested.
fn with_requested_name(error: DockerError, name: &str) -> DockerError {
    if error.is_missing() || matches!(error, DockerError::ImageMissing { .. }) {
        DockerError::ImageMissing {
            image: name.to_owned(),
        }
    } else {
        error
    }
}

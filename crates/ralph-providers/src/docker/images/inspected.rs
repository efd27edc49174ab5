//! The result of inspecting an image.

use bollard::models::ImageInspect;
use jiff::Timestamp;
use ralph_core::image::{ImageName, ImagePresence};
use ralph_core::parse_value;
use ralph_guest::available;

use crate::docker::go_architecture;

/// A local image of the Docker Engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerImage {
    pub id: String,
    pub tags: Vec<String>,
    /// Its size in bytes.
    pub size: u64,
    pub created: Option<Timestamp>,
    /// Such as `amd64`.
    pub architecture: String,
    /// The default user of its commands.
    pub user: String,
    /// Its digests in registries.
    pub registry_digests: Vec<String>,
    pub is_pulled: bool,
}

impl DockerImage {
    /// Converts the Docker Engine's response. Missing values become empty.
    pub(super) fn from_inspect(response: ImageInspect) -> Self {
        let registry_digests = response.repo_digests.unwrap_or_default();
        // Newer engines report an image's origin; older ones only give digests to pulled images.
        let is_pulled = match response.identity {
            Some(identity) => identity.pull.is_some_and(|pulls| !pulls.is_empty()),
            None => !registry_digests.is_empty(),
        };
        Self {
            id: response.id.unwrap_or_default(),
            tags: response.repo_tags.unwrap_or_default(),
            size: response
                .size
                .and_then(|size| available(u64::try_from(size)))
                .unwrap_or(0),
            created: response.created.as_deref().and_then(parse_value),
            architecture: go_architecture(&response.architecture.unwrap_or_default()).to_owned(),
            user: response
                .config
                .and_then(|config| config.user)
                .unwrap_or_default(),
            registry_digests,
            is_pulled,
        }
    }

    /// Returns an identifier of this image version: a registry digest, else the id.
    pub fn digest(&self) -> &str {
        self.registry_digests
            .first()
            .and_then(|digest| digest.split_once('@'))
            .map_or(&self.id, |(_, digest)| digest)
    }

    /// Returns whether the registry may have a newer version under this name.
    pub(super) fn presence(&self, name: &ImageName) -> ImagePresence {
        if self.is_pulled && !name.as_str().contains('@') {
            ImagePresence::Pulled
        } else {
            ImagePresence::Built
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_inspect(json: &str) -> DockerImage {
        DockerImage::from_inspect(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_pulled_image() {
        let found = parse_inspect(
            r#"{"Id":"sha256:1","RepoTags":["x:1","y:2"],"RepoDigests":["x@sha256:2"],"Size":7,
                "Created":"2026-11-15T21:46:05.5Z","Architecture":"amd64","Config":{"User":"agent"}}"#,
        );
        assert_eq!((found.digest(), found.user.as_str()), ("sha256:2", "agent"));
        assert_eq!(
            found.created,
            Some("2026-11-15T21:46:05.5Z".parse().unwrap())
        );
        let presence = |name: &str| found.presence(&ImageName::parse(name).unwrap());
        assert_eq!(presence("x:1"), ImagePresence::Pulled);
        let pinned = format!("x@sha256:{}", "2".repeat(64));
        assert_eq!(presence(&pinned), ImagePresence::Built, "it cannot change");
    }

    #[test]
    fn a_locally_built_image() {
        let name = ImageName::parse("x:1").unwrap();
        let old = parse_inspect(r#"{"Id":"sha256:1","RepoTags":["x:1"],"RepoDigests":[]}"#);
        assert_eq!(
            (old.digest(), old.presence(&name)),
            ("sha256:1", ImagePresence::Built)
        );
        let new = parse_inspect(
            r#"{"Id":"sha256:1","RepoDigests":["x@sha256:1"],"Identity":{"Build":[]}}"#,
        );
        assert_eq!(new.presence(&name), ImagePresence::Built);
    }
}

//! Operations on images.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bollard::query_parameters::{RemoveImageOptions, TagImageOptionsBuilder};
use ralph_core::image::{
    self, AgentImage, ImageEffort, ImageName, ImagePresence, InvalidImageName, PullDecision,
    RegistryChecks,
};
use ralph_core::ports::Clock;
use ralph_guest::{available, best_effort};

use super::base_checks::BaseCheckStore;
use super::build::{BuildCache, ImageBuild};
use super::error::ImageError;
use super::inspected::DockerImage;
use super::progress::{ImageProgress, ImageProgressSink};
use super::recipe::{ImageBase, ImageProject, ImageRecipe};
use super::{load, pull};
use crate::docker::{DockerEngine, DockerError};

/// The images of a Docker Engine.
#[derive(Clone)]
pub struct DockerImages {
    engine: DockerEngine,
    checks: BaseCheckStore,
    clock: Arc<dyn Clock>,
    network: Option<String>,
}

impl DockerImages {
    /// Creates the handle; `directory` stores the times of the checks for newer base images.
    pub fn new(engine: DockerEngine, directory: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self {
            engine,
            checks: BaseCheckStore::new(directory),
            clock,
            network: None,
        }
    }

    /// Sets the network of build steps, such as `host`.
    #[must_use]
    pub fn with_build_network(mut self, network: impl Into<String>) -> Self {
        self.network = Some(network.into());
        self
    }

    /// Builds missing layers of a recipe and returns the name of the resulting image.
    pub async fn ensure(
        &self,
        recipe: &ImageRecipe,
        effort: ImageEffort,
        watcher: ImageProgressSink<'_>,
    ) -> Result<ImageName, ImageError> {
        let (base, version) = match &recipe.base {
            ImageBase::Agent { on } => {
                let base = self
                    .ensure_base(recipe.agent, on.as_ref(), effort, watcher)
                    .await?;
                (base.clone(), base)
            }
            ImageBase::Named(image) => {
                let found = self.require(image).await?;
                // The name stays the same when the image changes, but the project's layer must be
                // rebuilt, so the digest is part of the version.
                let version = ImageName::parse(&format!("{image}@{}", found.digest()));
                (image.clone(), version.unwrap_or_else(|_| image.clone()))
            }
        };
        match &recipe.project {
            None => Ok(base),
            Some(project) => {
                let on = LayerBase {
                    name: base,
                    pinned_name: version,
                };
                self.ensure_project(recipe.agent, &on, project, effort, watcher)
                    .await
            }
        }
    }

    /// Builds an agent's image if it is missing and returns its name. `on` overrides the base image
    /// of the Dockerfile.
    pub async fn ensure_base(
        &self,
        agent: AgentImage,
        on: Option<&ImageName>,
        effort: ImageEffort,
        watcher: ImageProgressSink<'_>,
    ) -> Result<ImageName, ImageError> {
        let on = base_image(agent, on)?;
        let found = self.ensure_fresh(&on, effort, watcher).await?;
        let tag = image::base_tag(agent, agent.dockerfile(), found.digest());
        if effort == ImageEffort::Reuse && self.exists(&tag).await? {
            return Ok(tag);
        }
        let build = ImageBuild {
            image: &tag,
            dockerfile: agent.dockerfile().as_bytes(),
            context: &BTreeMap::new(),
            base: Some(&on),
            cache: cache_for(effort),
            network: self.network.as_deref(),
        };
        self.replace(build, watcher).await?;
        Ok(tag)
    }

    /// Returns the name that an agent's image would get now; `None` if the base image is not
    /// available locally.
    pub async fn base_tag(
        &self,
        agent: AgentImage,
        on: Option<&ImageName>,
    ) -> Result<Option<ImageName>, ImageError> {
        let found = self.inspect(&base_image(agent, on)?).await?;
        Ok(found.map(|found| image::base_tag(agent, agent.dockerfile(), found.digest())))
    }

    /// Builds an image from a Dockerfile with an empty context.
    pub async fn build_file(
        &self,
        image: &ImageName,
        dockerfile: &[u8],
        on: Option<&ImageName>,
        watcher: ImageProgressSink<'_>,
    ) -> Result<(), ImageError> {
        let build = ImageBuild {
            image,
            dockerfile,
            context: &BTreeMap::new(),
            base: on,
            cache: BuildCache::Reuse,
            network: self.network.as_deref(),
        };
        self.replace(build, watcher).await
    }

    /// Pulls an image from its registry, even if it exists locally.
    pub async fn pull(
        &self,
        image: &ImageName,
        watcher: ImageProgressSink<'_>,
    ) -> Result<(), ImageError> {
        watcher(ImageProgress::Started(format!("pulling image `{image}`")));
        pull::pull(&self.engine, image, watcher).await?;
        self.record_check(image, PullOutcome::Succeeded, watcher);
        Ok(())
    }

    /// Loads an archive written by `docker save` and returns its images.
    pub async fn load(
        &self,
        path: &Path,
        watcher: ImageProgressSink<'_>,
    ) -> Result<Vec<ImageName>, ImageError> {
        load::load(&self.engine, path, watcher).await
    }

    /// Adds a name to an image.
    pub async fn tag(&self, image: &ImageName, name: &ImageName) -> Result<(), ImageError> {
        let options = TagImageOptionsBuilder::new()
            .repo(name.repository())
            .tag(name.tag().unwrap_or("latest"))
            .build();
        let call = self.engine.api().tag_image(image.as_str(), Some(options));
        let doing = format!("tag image `{image}` as `{name}`");
        Ok(self.engine.call(&doing, call).await?)
    }

    /// Removes an image, or one of its names if it has others. A missing image is not an error.
    pub async fn remove(&self, image: &ImageName) -> Result<(), ImageError> {
        let options = None::<RemoveImageOptions>;
        let call = self
            .engine
            .api()
            .remove_image(image.as_str(), options, None);
        let doing = format!("remove image `{image}`");
        match self.engine.call(&doing, call).await {
            Ok(_) => Ok(()),
            Err(error) if is_image_missing(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Inspects an image; returns `None` if it does not exist.
    pub async fn inspect(&self, image: &ImageName) -> Result<Option<DockerImage>, ImageError> {
        let call = self.engine.api().inspect_image(image.as_str());
        match self
            .engine
            .call(&format!("inspect image `{image}`"), call)
            .await
        {
            Ok(response) => Ok(Some(DockerImage::from_inspect(response))),
            Err(error) if is_image_missing(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether the image exists locally.
    pub async fn exists(&self, image: &ImageName) -> Result<bool, ImageError> {
        Ok(self.inspect(image).await?.is_some())
    }

    /// Returns an image that must exist and match the Docker Engine's architecture.
    async fn require(&self, image: &ImageName) -> Result<DockerImage, ImageError> {
        let missing = || DockerError::ImageMissing {
            image: image.to_string(),
        };
        let found = self.inspect(image).await?.ok_or_else(missing)?;
        let needs = self.engine.info().await?.architecture;
        if found.architecture != needs {
            let error = DockerError::WrongArchitecture {
                image: image.to_string(),
                has: found.architecture,
                needs,
            };
            return Err(error.into());
        }
        Ok(found)
    }
}

/// The image below a project's layer.
struct LayerBase {
    name: ImageName,
    /// A name that changes with the image content.
    pinned_name: ImageName,
}

impl DockerImages {
    async fn ensure_project(
        &self,
        agent: AgentImage,
        on: &LayerBase,
        project: &ImageProject,
        effort: ImageEffort,
        watcher: ImageProgressSink<'_>,
    ) -> Result<ImageName, ImageError> {
        let Some(layer) = project.config.layer()? else {
            return Ok(on.name.clone());
        };
        let tag = image::project_tag(agent, &project.name, &on.pinned_name, &layer);
        if effort == ImageEffort::Reuse && self.exists(&tag).await? {
            return Ok(tag);
        }
        let build = ImageBuild {
            image: &tag,
            dockerfile: &layer.dockerfile,
            context: &layer.context,
            base: Some(&on.name),
            cache: cache_for(effort),
            network: self.network.as_deref(),
        };
        self.replace(build, watcher).await?;
        Ok(tag)
    }

    /// Builds an image and removes the previous one of that name if it has no other name.
    async fn replace(
        &self,
        build: ImageBuild<'_>,
        watcher: ImageProgressSink<'_>,
    ) -> Result<(), ImageError> {
        let before = self.inspect(build.image).await?;
        build.run(&self.engine, watcher).await?;
        let Some(before) = before.and_then(|found| available(ImageName::parse(&found.id))) else {
            return Ok(());
        };
        let is_unnamed = self
            .inspect(&before)
            .await?
            .is_some_and(|found| found.tags.is_empty());
        if is_unnamed {
            // A container may still use it; then it stays.
            best_effort(self.remove(&before).await);
        }
        Ok(())
    }

    /// Returns a base image, pulling it if it is missing or its last check is too old. Falls back
    /// to the local image if the pull fails.
    async fn ensure_fresh(
        &self,
        image: &ImageName,
        effort: ImageEffort,
        watcher: ImageProgressSink<'_>,
    ) -> Result<DockerImage, ImageError> {
        let found = self.inspect(image).await?;
        let presence = found
            .as_ref()
            .map_or(ImagePresence::Missing, |found| found.presence(image));
        let now = self.clock.now();
        let checks = self.checks.get(image);
        match (PullDecision::decide(presence, checks, effort, now), found) {
            (PullDecision::Skipped, Some(found)) => Ok(found),
            (PullDecision::Due, Some(found)) => match self.pull(image, watcher).await {
                Ok(()) => self.require(image).await,
                Err(error @ ImageError::Pull { .. }) => {
                    watcher(ImageProgress::Warning(format!(
                        "cannot check for a newer `{image}`, using the local one: {error}"
                    )));
                    self.record_check(image, PullOutcome::Failed, watcher);
                    Ok(found)
                }
                Err(error) => Err(error),
            },
            (PullDecision::Required | PullDecision::Due | PullDecision::Skipped, _) => {
                self.pull(image, watcher).await?;
                self.require(image).await
            }
        }
    }

    fn record_check(
        &self,
        image: &ImageName,
        outcome: PullOutcome,
        watcher: ImageProgressSink<'_>,
    ) {
        let now = self.clock.now();
        let succeeded = match outcome {
            PullOutcome::Succeeded => Some(now),
            PullOutcome::Failed => self.checks.get(image).succeeded,
        };
        let checks = RegistryChecks {
            succeeded,
            tried: Some(now),
        };
        if let Err(error) = self.checks.record(image, checks) {
            watcher(ImageProgress::Warning(format!(
                "cannot record the check for a newer `{image}`: {error}"
            )));
        }
    }
}

/// Whether a pull succeeded.
#[derive(Debug, Clone, Copy)]
enum PullOutcome {
    Succeeded,
    Failed,
}

/// Returns whether the Docker Engine reports a missing image.
fn is_image_missing(error: &DockerError) -> bool {
    error.is_missing() || matches!(error, DockerError::ImageMissing { .. })
}

/// Returns the base image of an agent's image.
fn base_image(agent: AgentImage, on: Option<&ImageName>) -> Result<ImageName, InvalidImageName> {
    match on {
        Some(image) => Ok(image.clone()),
        None => ImageName::parse(image::default_base(agent.dockerfile()).unwrap_or_default()),
    }
}

fn cache_for(effort: ImageEffort) -> BuildCache {
    match effort {
        ImageEffort::Reuse | ImageEffort::Build => BuildCache::Reuse,
        ImageEffort::Rebuild => BuildCache::Ignore,
    }
}

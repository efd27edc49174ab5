//! Builds one image from an in-memory context.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bollard::body_full;
use bollard::errors::Error;
use bollard::query_parameters::BuildImageOptionsBuilder;
use ralph_core::image::{ImageName, ProjectConfigFile};

use super::build_context::{self, DOCKERFILE};
use super::build_output::BuildOutput;
use super::error::ImageError;
use super::progress::{ImageProgress, ImageProgressSink};
use super::stream;
use crate::docker::DockerEngine;
use crate::docker::error::{mentions_full_disk, root_message};

/// Maximum time without output: a step may compile something large.
const BUILD_IDLE_TIMEOUT: Duration = Duration::from_mins(30);

/// Label of images built by ralph.
const IMAGE_LABEL: &str = "ralph.image";

/// The inputs of an image build.
pub(super) struct ImageBuild<'a> {
    pub(super) image: &'a ImageName,
    pub(super) dockerfile: &'a [u8],
    /// Files that the Dockerfile may copy.
    pub(super) context: &'a BTreeMap<String, ProjectConfigFile>,
    /// The base image, if the Dockerfile takes it as an argument.
    pub(super) base: Option<&'a ImageName>,
    pub(super) cache: BuildCache,
    /// The network of the build steps; `None` means the Docker Engine's default.
    pub(super) network: Option<&'a str>,
}

/// Whether cached steps of earlier builds are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuildCache {
    /// Cached steps are reused.
    Reuse,
    /// Every step runs again.
    Ignore,
}

impl ImageBuild<'_> {
    /// Builds the image. Dropping the future cancels the build.
    pub(super) async fn run(
        &self,
        engine: &DockerEngine,
        watcher: ImageProgressSink<'_>,
    ) -> Result<(), ImageError> {
        let doing = format!("build image `{}`", self.image);
        watcher(ImageProgress::Started(format!(
            "building image `{}`",
            self.image
        )));
        let packed = build_context::pack(self.dockerfile, self.context).map_err(|source| {
            ImageError::Read {
                path: "the build context".to_owned(),
                source,
            }
        })?;
        let api = engine.api().clone().with_timeout(BUILD_IDLE_TIMEOUT);
        let mut response = Box::pin(api.build_image(self.options(), None, Some(body_full(packed))));
        let mut output = BuildOutput::default();
        let mut step = None;
        while let Some(chunk) =
            stream::next_within(&mut response, &doing, BUILD_IDLE_TIMEOUT).await?
        {
            match chunk {
                Ok(info) => {
                    for progress in output.push(&info.stream.unwrap_or_default()) {
                        step = step_label(&progress).or(step);
                        watcher(progress);
                    }
                }
                Err(error) => {
                    return Err(self
                        .classify_failure(engine, &doing, error, step, output)
                        .await);
                }
            }
        }
        output.flush().map(watcher);
        Ok(())
    }

    fn options(&self) -> bollard::query_parameters::BuildImageOptions {
        let mut options = BuildImageOptionsBuilder::new()
            .dockerfile(DOCKERFILE)
            .t(self.image.as_str())
            .nocache(self.cache == BuildCache::Ignore)
            .rm(true)
            .forcerm(true)
            .labels(&HashMap::from([(IMAGE_LABEL, self.image.repository())]));
        if let Some(on) = self.base {
            options = options.buildargs(&HashMap::from([("BASE_IMAGE", on.as_str())]));
        }
        if let Some(network) = self.network {
            options = options.networkmode(network);
        }
        options.build()
    }

    /// Classifies a failed build: lost connection, full disk or failed step.
    async fn classify_failure(
        &self,
        engine: &DockerEngine,
        doing: &str,
        error: Error,
        step: Option<String>,
        output: BuildOutput,
    ) -> ImageError {
        let message = root_message(&error);
        let is_step_failure = matches!(
            error,
            Error::DockerStreamError { .. } | Error::DockerResponseServerError { .. }
        );
        let tail = output.tail();
        // Only the step's own output names the full disk; the Docker Engine just reports a failed
        // step.
        if mentions_full_disk(&message) || tail.iter().any(|line| mentions_full_disk(line)) {
            return engine.disk_full_error(doing).await.into();
        }
        if !is_step_failure {
            return engine.classify_failure(doing, error).await.into();
        }
        let exit_code = message
            .rsplit_once("returned a non-zero code: ")
            .map(|(_, code)| code.trim());
        let why = match (step, exit_code) {
            (Some(step), Some(code)) => format!("{step} failed with exit code {code}"),
            (Some(step), None) => format!("{step}: {message}"),
            (None, _) => message,
        };
        ImageError::Build {
            image: self.image.clone(),
            why,
            tail,
        }
    }
}

/// Returns a short display name of a step.
fn step_label(progress: &ImageProgress) -> Option<String> {
    let ImageProgress::Step {
        number,
        total,
        instruction,
    } = progress
    else {
        return None;
    };
    let short: String = instruction.chars().take(60).collect();
    let more = if short.len() < instruction.len() {
        "…"
    } else {
        ""
    };
    Some(format!("step {number} of {total}, `{short}{more}`,"))
}

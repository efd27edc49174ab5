//! Builds one image from a context in memory.

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

/// How long a build may print nothing: a step may compile something large.
const BUILD_IDLE_TIMEOUT: Duration = Duration::from_mins(30);

/// Marks the images that were built here.
const IMAGE_LABEL: &str = "ralph.image";

/// What is built.
pub(super) struct ImageBuild<'a> {
    /// What it will be called.
    pub(super) image: &'a ImageName,
    /// Its Dockerfile.
    pub(super) dockerfile: &'a [u8],
    /// What the Dockerfile may copy.
    pub(super) context: &'a BTreeMap<String, ProjectConfigFile>,
    /// The image it is built on, where the Dockerfile leaves that open.
    pub(super) base: Option<&'a ImageName>,
    /// Whether steps of earlier builds are taken.
    pub(super) cache: BuildCache,
    /// The network of its steps, unless the engine's default.
    pub(super) network: Option<&'a str>,
}

/// Whether steps of earlier builds are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuildCache {
    /// They are.
    Reuse,
    /// Every step is done again.
    Ignore,
}

impl ImageBuild<'_> {
    /// Builds it. Dropping the future ends the build.
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
                path: "the files of the build".to_owned(),
                source,
            }
        })?;
        let api = engine.api().clone().with_timeout(BUILD_IDLE_TIMEOUT);
        let mut answer = Box::pin(api.build_image(self.options(), None, Some(body_full(packed))));
        let mut lines = BuildOutput::default();
        let mut step = None;
        while let Some(piece) = stream::next_within(&mut answer, &doing, BUILD_IDLE_TIMEOUT).await?
        {
            match piece {
                Ok(info) => {
                    for told in lines.push(&info.stream.unwrap_or_default()) {
                        step = step_label(&told).or(step);
                        watcher(told);
                    }
                }
                Err(error) => {
                    return Err(self
                        .classify_failure(engine, &doing, error, step, lines)
                        .await);
                }
            }
        }
        lines.flush().map(watcher);
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

    /// Says why a build failed: the engine is gone, its disk is full, or a step did not work.
    async fn classify_failure(
        &self,
        engine: &DockerEngine,
        doing: &str,
        error: Error,
        step: Option<String>,
        lines: BuildOutput,
    ) -> ImageError {
        let words = root_message(&error);
        let is_about_a_step = matches!(
            error,
            Error::DockerStreamError { .. } | Error::DockerResponseServerError { .. }
        );
        let tail = lines.tail();
        // A step's own message says what ran out; the engine only says that the step failed.
        if mentions_full_disk(&words) || tail.iter().any(|line| mentions_full_disk(line)) {
            return engine.disk_full_error(doing).await.into();
        }
        if !is_about_a_step {
            return engine.classify_failure(doing, error).await.into();
        }
        let ended = words
            .rsplit_once("returned a non-zero code: ")
            .map(|(_, code)| code.trim());
        let why = match (step, ended) {
            (Some(step), Some(code)) => format!("{step} ended with {code}"),
            (Some(step), None) => format!("{step}: {words}"),
            (None, _) => words,
        };
        ImageError::Build {
            image: self.image.clone(),
            why,
            tail,
        }
    }
}

/// Returns the short name of a step, for people.
fn step_label(told: &ImageProgress) -> Option<String> {
    let ImageProgress::Step {
        number,
        total,
        instruction,
    } = told
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

//! Builds one image from a context in memory.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bollard::body_full;
use bollard::errors::Error;
use bollard::query_parameters::BuildImageOptionsBuilder;
use ralph_core::image::{ConfigFile, ImageName};

use super::context::{self, DOCKERFILE};
use super::error::ImageError;
use super::lines::Lines;
use super::progress::{Progress, Watcher};
use super::stream;
use crate::docker::Engine;
use crate::docker::error::{is_full, said};

/// How long a build may print nothing: a step may compile something large.
const PATIENCE: Duration = Duration::from_mins(30);

/// Marks the images that were built here.
const LABEL: &str = "ralph.image";

/// What is built.
pub(super) struct Build<'a> {
    /// What it will be called.
    pub(super) image: &'a ImageName,
    /// Its Dockerfile.
    pub(super) dockerfile: &'a [u8],
    /// What the Dockerfile may copy.
    pub(super) context: &'a BTreeMap<String, ConfigFile>,
    /// The image it is built on, where the Dockerfile leaves that open.
    pub(super) on: Option<&'a ImageName>,
    /// Whether steps of earlier builds are taken.
    pub(super) cache: Cache,
    /// The network of its steps, unless the engine's default.
    pub(super) network: Option<&'a str>,
}

/// Whether steps of earlier builds are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    /// They are.
    Used,
    /// Every step is done again.
    Unused,
}

impl Build<'_> {
    /// Builds it. Dropping the future ends the build.
    pub(super) async fn run(
        &self,
        engine: &Engine,
        watcher: Watcher<'_>,
    ) -> Result<(), ImageError> {
        let doing = format!("build image `{}`", self.image);
        watcher(Progress::Doing(format!("building image `{}`", self.image)));
        let packed =
            context::pack(self.dockerfile, self.context).map_err(|source| ImageError::Read {
                path: "the files of the build".to_owned(),
                source,
            })?;
        let api = engine.api().clone().with_timeout(PATIENCE);
        let mut answer = Box::pin(api.build_image(self.options(), None, Some(body_full(packed))));
        let mut lines = Lines::default();
        let mut step = None;
        while let Some(piece) = stream::next(&mut answer, &doing, PATIENCE).await? {
            match piece {
                Ok(info) => {
                    for told in lines.push(&info.stream.unwrap_or_default()) {
                        step = label_of(&told).or(step);
                        watcher(told);
                    }
                }
                Err(error) => {
                    return Err(self.failure(engine, &doing, error, step, lines).await);
                }
            }
        }
        lines.close().map(watcher);
        Ok(())
    }

    fn options(&self) -> bollard::query_parameters::BuildImageOptions {
        let mut options = BuildImageOptionsBuilder::new()
            .dockerfile(DOCKERFILE)
            .t(self.image.as_str())
            .nocache(self.cache == Cache::Unused)
            .rm(true)
            .forcerm(true)
            .labels(&HashMap::from([(LABEL, self.image.repository())]));
        if let Some(on) = self.on {
            options = options.buildargs(&HashMap::from([("BASE_IMAGE", on.as_str())]));
        }
        if let Some(network) = self.network {
            options = options.networkmode(network);
        }
        options.build()
    }

    /// Says why a build failed: the engine is gone, its disk is full, or a step did not work.
    async fn failure(
        &self,
        engine: &Engine,
        doing: &str,
        error: Error,
        step: Option<String>,
        lines: Lines,
    ) -> ImageError {
        let words = said(&error);
        let is_about_a_step = matches!(
            error,
            Error::DockerStreamError { .. } | Error::DockerResponseServerError { .. }
        );
        let tail = lines.tail();
        // A step's own message says what ran out; the engine only says that the step failed.
        if is_full(&words) || tail.iter().any(|line| is_full(line)) {
            return engine.full(doing).await.into();
        }
        if !is_about_a_step {
            return engine.failure(doing, error).await.into();
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
fn label_of(told: &Progress) -> Option<String> {
    let Progress::Step {
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

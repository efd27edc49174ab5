//! The common fixture: the Docker Engine, unique names and cleanup.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};

use bollard::query_parameters::{ListImagesOptionsBuilder, RemoveImageOptionsBuilder};
use ralph_core::image::{AgentImage, ImageEffort, ImageName, ProjectConfig};
use ralph_guest::best_effort;
use ralph_providers::docker::DockerEngine;
use ralph_providers::docker::images::{
    DockerImages, ImageBase, ImageError, ImageProgress, ImageProject, ImageRecipe,
};
pub(crate) use ralph_test::BASE_IMAGE as BOOKWORM;
use ralph_test::{TestClock, skip_without_docker};
use tempfile::TempDir;

/// A Docker Engine, with image names that no other test uses.
pub(crate) struct ImageTestEnv {
    pub(crate) engine: DockerEngine,
    pub(crate) images: DockerImages,
    pub(crate) clock: Arc<TestClock>,
    /// Stores the times of the checks for newer images.
    pub(crate) checks_directory: TempDir,
    /// Part of every name.
    pub(crate) unique_part: String,
    created: Mutex<BTreeSet<ImageName>>,
}

/// Runs a test, unless Docker tests are skipped, and removes its images.
pub(crate) fn with_engine<F: Future<Output = ()>>(test: impl FnOnce(Arc<ImageTestEnv>) -> F) {
    if skip_without_docker() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let env = Arc::new(runtime.block_on(ImageTestEnv::new()));
    let test = test(Arc::clone(&env));
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test)));
    runtime.block_on(env.clean());
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

impl ImageTestEnv {
    async fn new() -> Self {
        let host = std::env::var_os("DOCKER_HOST").map(|host| host.into_string().unwrap());
        let engine = DockerEngine::connect(host.as_deref()).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let clock = TestClock::at("2027-01-15T08:00:00Z");
        let checks = directory.path().join("images");
        // No step here needs a network, and the default one may not exist.
        let images =
            DockerImages::new(engine.clone(), checks, clock.clone()).with_build_network("none");
        let name = directory.path().file_name().unwrap().to_string_lossy();
        Self {
            engine,
            images,
            clock,
            unique_part: name.trim_start_matches('.').to_lowercase(),
            checks_directory: directory,
            created: Mutex::default(),
        }
    }

    /// Returns a name unique to this test; the image is removed at the end.
    pub(crate) fn name(&self, tag: &str) -> ImageName {
        self.track(&ImageName::parse(&format!("ralph-test-{}:{tag}", self.unique_part)).unwrap())
    }

    /// Registers an image for removal at the end.
    pub(crate) fn track(&self, image: &ImageName) -> ImageName {
        self.created.lock().unwrap().insert(image.clone());
        image.clone()
    }

    /// Builds an image from a Dockerfile with an empty context.
    pub(crate) async fn build(&self, image: &ImageName, dockerfile: &str) {
        self.images
            .build_file(image, dockerfile.as_bytes(), None, &mut |_| {})
            .await
            .unwrap();
    }

    /// Builds a small base image on which the agents' Dockerfiles build within seconds and without
    /// a network: their installers are stubs. `version` produces a distinct image.
    pub(crate) async fn build_stub_base(&self, version: &str) -> ImageName {
        let image = self.name("stage");
        let stubs = r#"for name in apt-get npm fdfind; do printf '#!/bin/sh\necho "$0 $*"\n' > /usr/local/bin/$name && chmod 755 /usr/local/bin/$name; done"#;
        // The first label keeps the cached layers apart from those of other tests, which remove them.
        let test = &self.unique_part;
        let dockerfile = format!(
            "FROM {BOOKWORM}\nLABEL test={test}\nRUN {stubs}\nLABEL stage={test}-{version}\n"
        );
        self.build(&image, &dockerfile).await;
        image
    }

    /// Returns the recipe of a project with these files in its `.agent-loop`, on a named image.
    pub(crate) fn recipe(&self, base: &ImageName, files: &[(&str, &str)]) -> ImageRecipe {
        ImageRecipe {
            agent: AgentImage::Plain,
            base: ImageBase::Named(base.clone()),
            project: Some(ImageProject {
                name: format!("Test {}", self.unique_part),
                config: ProjectConfig::from_files(files.iter().copied()),
            }),
        }
    }

    /// Ensures a recipe and returns the progress reports.
    pub(crate) async fn ensure(
        &self,
        recipe: &ImageRecipe,
        effort: ImageEffort,
    ) -> (Result<ImageName, ImageError>, Vec<ImageProgress>) {
        let mut reports = Vec::new();
        let result = self
            .images
            .ensure(recipe, effort, &mut |progress| reports.push(progress))
            .await;
        if let Ok(image) = &result {
            self.track_if_created(image);
        }
        (result, reports)
    }

    /// Registers an image for removal if ralph has named it; any other existed before.
    fn track_if_created(&self, image: &ImageName) {
        if image.repository().starts_with("agent-loop-sandbox-") {
            self.track(image);
        }
    }

    /// Returns an image's id.
    pub(crate) async fn id(&self, image: &ImageName) -> String {
        self.images.inspect(image).await.unwrap().unwrap().id
    }

    /// Removes the images of this test: those with its names, and those that lost theirs.
    async fn clean(&self) {
        let options = ListImagesOptionsBuilder::new().all(true).build();
        let all = self.engine.api().list_images(Some(options)).await.unwrap();
        let mut ours: BTreeSet<&str> = BTreeSet::new();
        // Collects children after their parents: one round per build step is enough.
        for _ in 0..30 {
            for image in &all {
                let is_ours = ours.contains(image.parent_id.as_str())
                    && !image.parent_id.is_empty()
                    || image
                        .labels
                        .values()
                        .any(|label| label.contains(&self.unique_part))
                    || image
                        .repo_digests
                        .iter()
                        .any(|name| name.contains(&self.unique_part));
                if is_ours {
                    ours.insert(&image.id);
                }
            }
        }
        let created = self.created.lock().unwrap().clone();
        let names = created.iter().map(ImageName::as_str);
        for image in names.chain(ours) {
            self.remove(image).await;
        }
    }

    /// Removes an image. A missing one is not an error.
    async fn remove(&self, image: &str) {
        let options = RemoveImageOptionsBuilder::new().force(true).build();
        let removed = self.engine.api().remove_image(image, Some(options), None);
        best_effort(removed.await);
    }
}

/// Returns the images that were built, according to the progress reports.
pub(crate) fn built(reports: &[ImageProgress]) -> Vec<String> {
    reports
        .iter()
        .filter_map(|progress| match progress {
            ImageProgress::Started(text) => Some(text.clone()),
            ImageProgress::Step { .. }
            | ImageProgress::Output(_)
            | ImageProgress::Transfer { .. }
            | ImageProgress::Warning(_) => None,
        })
        .collect()
}

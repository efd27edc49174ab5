//! What every test stands on: the engine, names of its own, and a way to clean up.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bollard::query_parameters::{ListImagesOptionsBuilder, RemoveImageOptionsBuilder};
use jiff::Timestamp;
use ralph_core::image::{AgentImage, Effort, ImageName, ProjectConfig};
use ralph_core::ports::Clock;
use ralph_providers::docker::Engine;
use ralph_providers::docker::images::{Base, ImageError, Images, Progress, Project, Recipe};
pub(crate) use ralph_test::BASE_IMAGE as BOOKWORM;
use ralph_test::left_out_without_docker;
use tempfile::TempDir;

/// A clock that a test sets.
#[derive(Debug, Default)]
pub(crate) struct SetClock {
    seconds: AtomicI64,
}

impl SetClock {
    pub(crate) fn advance(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + self.seconds.load(Ordering::SeqCst)).unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// The engine, with names that no other test uses.
pub(crate) struct Ground {
    pub(crate) engine: Engine,
    pub(crate) images: Images,
    pub(crate) clock: Arc<SetClock>,
    /// Where it is remembered when newer versions were looked for.
    pub(crate) memory: TempDir,
    /// Part of every name.
    pub(crate) word: String,
    made: Mutex<BTreeSet<ImageName>>,
}

/// Runs a test, unless tests with an engine are left out, and removes the images that it made.
pub(crate) fn with_engine<F: Future<Output = ()>>(test: impl FnOnce(Arc<Ground>) -> F) {
    if left_out_without_docker() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let ground = Arc::new(runtime.block_on(Ground::new()));
    let test = test(Arc::clone(&ground));
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test)));
    runtime.block_on(ground.clean());
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
}

impl Ground {
    async fn new() -> Self {
        let host = std::env::var_os("DOCKER_HOST").map(|host| host.into_string().unwrap());
        let engine = Engine::connect(host.as_deref()).await.unwrap();
        let memory = tempfile::tempdir().unwrap();
        let clock = Arc::new(SetClock::default());
        let place = memory.path().join("images");
        // No step here needs a network, and the engine's own may not be there.
        let images = Images::new(engine.clone(), place, clock.clone()).with_build_network("none");
        let word = memory.path().file_name().unwrap().to_string_lossy();
        Self {
            engine,
            images,
            clock,
            word: word.trim_start_matches('.').to_lowercase(),
            memory,
            made: Mutex::default(),
        }
    }

    /// Returns a name that is the test's own; the image is removed at its end.
    pub(crate) fn name(&self, tag: &str) -> ImageName {
        self.own(&ImageName::parse(&format!("ralph-test-{}:{tag}", self.word)).unwrap())
    }

    /// Sees to it that an image is removed at the end.
    pub(crate) fn own(&self, image: &ImageName) -> ImageName {
        self.made.lock().unwrap().insert(image.clone());
        image.clone()
    }

    /// Builds an image from a Dockerfile alone.
    pub(crate) async fn build(&self, image: &ImageName, dockerfile: &str) {
        self.images
            .build_file(image, dockerfile.as_bytes(), None, &mut |_| {})
            .await
            .unwrap();
    }

    /// Builds a small image that the agents' Dockerfiles can be built on within seconds and without
    /// a network: what they install is only played. `version` makes it another image.
    pub(crate) async fn stage(&self, version: &str) -> ImageName {
        let image = self.name("stage");
        let plays = r#"for name in apt-get npm fdfind; do printf '#!/bin/sh\necho "$0 $*"\n' > /usr/local/bin/$name && chmod 755 /usr/local/bin/$name; done"#;
        let dockerfile = format!(
            "FROM {BOOKWORM}\nRUN {plays}\nLABEL stage={}-{version}\n",
            self.word
        );
        self.build(&image, &dockerfile).await;
        image
    }

    /// Returns the recipe of a project with these files in its `.agent-loop`, on a named image.
    pub(crate) fn recipe(&self, base: &ImageName, files: &[(&str, &str)]) -> Recipe {
        Recipe {
            agent: AgentImage::Plain,
            base: Base::Named(base.clone()),
            project: Some(Project {
                name: format!("Test {}", self.word),
                config: ProjectConfig::of(files.iter().copied()),
            }),
        }
    }

    /// Ensures a recipe and returns what was told on the way.
    pub(crate) async fn ensure(
        &self,
        recipe: &Recipe,
        effort: Effort,
    ) -> (Result<ImageName, ImageError>, Vec<Progress>) {
        let mut told = Vec::new();
        let ended = self
            .images
            .ensure(recipe, effort, &mut |progress| told.push(progress))
            .await;
        if let Ok(image) = &ended {
            self.own_if_ours(image);
        }
        (ended, told)
    }

    /// Sees to it that a made image is removed, but never one that was there before.
    fn own_if_ours(&self, image: &ImageName) {
        if image.repository().starts_with("agent-loop-sandbox-") {
            self.own(image);
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
        // Children after their parents: as many rounds as a build has steps are enough.
        for _ in 0..30 {
            for image in &all {
                let is_ours = ours.contains(image.parent_id.as_str())
                    && !image.parent_id.is_empty()
                    || image
                        .labels
                        .values()
                        .any(|label| label.contains(&self.word))
                    || image
                        .repo_digests
                        .iter()
                        .any(|name| name.contains(&self.word));
                if is_ours {
                    ours.insert(&image.id);
                }
            }
        }
        let made = self.made.lock().unwrap().clone();
        let names = made.iter().map(ImageName::as_str);
        for image in names.chain(ours) {
            self.remove(image).await;
        }
    }

    /// Removes an image. One that is gone already is fine.
    async fn remove(&self, image: &str) {
        let options = RemoveImageOptionsBuilder::new().force(true).build();
        let removed = self.engine.api().remove_image(image, Some(options), None);
        removed.await.ok();
    }
}

/// Returns the images that were built, by what was told.
pub(crate) fn built(told: &[Progress]) -> Vec<String> {
    told.iter()
        .filter_map(|progress| match progress {
            Progress::Doing(text) => Some(text.clone()),
            Progress::Step { .. }
            | Progress::Output(_)
            | Progress::Transfer { .. }
            | Progress::Warning(_) => None,
        })
        .collect()
}

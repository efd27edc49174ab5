//! Images from a registry: pulled if missing, checked every seven days, usable without a network.

use std::time::Duration;

use ralph_core::image::{self, AgentImage, ImageEffort, ImageName};
use ralph_providers::docker::images::{ImageError, ImageProgress};

use crate::fixture::{ImageTestEnv, built, with_engine};
use crate::registry::FakeRegistry;

/// The interval between two checks for a newer image.
const CHECK_INTERVAL: Duration = Duration::from_hours(7 * 24);
const SECOND: Duration = Duration::from_secs(1);

/// A registry with the base image of an agent image that appears to be built already.
struct PullScenario {
    registry: FakeRegistry,
    architecture: String,
    tag: ImageName,
}

async fn registry(ground: &ImageTestEnv) -> (FakeRegistry, String) {
    let architecture = ground.engine.info().await.unwrap().architecture;
    let registry =
        FakeRegistry::start(&format!("ralph-test/{}", ground.unique_part), &architecture).await;
    ground.track(&registry.image);
    (registry, architecture)
}

/// Tags an image with the agent image's name, as if it had been built on the registry's base.
async fn pull_scenario(ground: &ImageTestEnv) -> PullScenario {
    let (registry, architecture) = registry(ground).await;
    ground
        .images
        .pull(&registry.image, &mut |_| {})
        .await
        .unwrap();
    let on = Some(&registry.image);
    let tag = ground
        .images
        .base_tag(AgentImage::Plain, on)
        .await
        .unwrap()
        .unwrap();
    ground
        .images
        .tag(&registry.image, &ground.track(&tag))
        .await
        .unwrap();
    PullScenario {
        registry,
        architecture,
        tag,
    }
}

async fn ensure(
    ground: &ImageTestEnv,
    on: &ImageName,
    effort: ImageEffort,
) -> (Result<ImageName, ImageError>, Vec<ImageProgress>) {
    let mut told = Vec::new();
    let ended = ground
        .images
        .ensure_base(AgentImage::Plain, Some(on), effort, &mut |progress| {
            if !matches!(progress, ImageProgress::Transfer { .. }) {
                told.push(progress);
            }
        })
        .await;
    (ended, told)
}

#[test]
fn an_image_is_pulled() {
    with_engine(async |ground| {
        let (registry, architecture) = registry(&ground).await;
        let digest = registry.publish("first", &architecture);
        let mut told = Vec::new();
        ground
            .images
            .pull(&registry.image, &mut |progress| told.push(progress))
            .await
            .unwrap();
        assert_eq!(
            told[0],
            ImageProgress::Started(format!("pulling image `{}`", registry.image))
        );
        let found = ground
            .images
            .inspect(&registry.image)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((found.digest(), found.is_pulled), (digest.as_str(), true));
    });
}

#[test]
fn an_image_missing_from_the_registry_is_reported() {
    with_engine(async |ground| {
        let (registry, _) = registry(&ground).await;
        let other = ImageName::parse(&format!("{}:none", registry.image.repository())).unwrap();
        let error = ground.images.pull(&other, &mut |_| {}).await.unwrap_err();
        assert!(matches!(error, ImageError::Pull { .. }), "{error}");
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot pull image `{other}`: ")),
            "{error}"
        );
        assert!(
            error
                .problem()
                .fix
                .ends_with(&format!("`docker pull {other}`"))
        );
    });
}

#[test]
fn a_missing_base_is_pulled_or_reported_as_unreachable() {
    with_engine(async |ground| {
        let (registry, _) = registry(&ground).await;
        let (ended, told) = ensure(&ground, &registry.image, ImageEffort::Reuse).await;
        // It contains no programs, so the following build fails.
        assert!(matches!(ended, Err(ImageError::Build { .. })), "{ended:?}");
        assert_eq!(
            built(&told)[0],
            format!("pulling image `{}`", registry.image)
        );

        let gone = ImageName::parse("127.0.0.1:1/ralph-test/none:1").unwrap();
        let (ended, _) = ensure(&ground, &gone, ImageEffort::Reuse).await;
        let text = ended.unwrap_err().to_string();
        assert!(
            text.starts_with(&format!("cannot pull image `{gone}`: ")),
            "{text}"
        );
        assert!(text.contains("connection refused"), "{text}");
    });
}

#[test]
fn newer_versions_are_checked_every_seven_days() {
    with_engine(async |ground| {
        let PullScenario { registry, tag, .. } = pull_scenario(&ground).await;
        let on = &registry.image;
        let pulling = ImageProgress::Started(format!("pulling image `{on}`"));
        let looks = async |ground: &ImageTestEnv, effort| {
            let before = registry.request_count();
            let (ended, told) = ensure(ground, on, effort).await;
            assert_eq!(ended.unwrap(), tag);
            assert_eq!(told.contains(&pulling), registry.request_count() > before);
            registry.request_count() > before
        };
        assert!(
            !looks(&ground, ImageEffort::Reuse).await,
            "it was pulled just now"
        );
        ground
            .clock
            .advance(CHECK_INTERVAL.checked_sub(SECOND).unwrap());
        assert!(!looks(&ground, ImageEffort::Reuse).await);
        ground.clock.advance(SECOND);
        assert!(looks(&ground, ImageEffort::Reuse).await);
        assert!(!looks(&ground, ImageEffort::Reuse).await);
    });
}

#[test]
fn a_newer_version_builds_another_image_and_rebuild_checks_immediately() {
    with_engine(async |ground| {
        let scene = pull_scenario(&ground).await;
        let on = &scene.registry.image;
        let (ended, _) = ensure(&ground, on, ImageEffort::Reuse).await;
        assert_eq!(ended.unwrap(), scene.tag);
        let digest = scene.registry.publish("second", &scene.architecture);
        let (ended, _) = ensure(&ground, on, ImageEffort::Reuse).await;
        assert_eq!(ended.unwrap(), scene.tag, "nobody looked yet");
        let (_, told) = ensure(&ground, on, ImageEffort::Rebuild).await;
        let agent = AgentImage::Plain;
        let tag = image::base_tag(agent, agent.dockerfile(), &digest);
        assert_eq!(
            built(&told),
            [
                format!("pulling image `{on}`"),
                format!("building image `{tag}`")
            ]
        );
    });
}

#[test]
fn without_a_network_the_local_image_is_used() {
    with_engine(async |ground| {
        let PullScenario { registry, tag, .. } = pull_scenario(&ground).await;
        let on = registry.image.clone();
        drop(registry);
        let warnings = async |ground: &ImageTestEnv| {
            let (ended, told) = ensure(ground, &on, ImageEffort::Reuse).await;
            assert_eq!(ended.unwrap(), tag);
            told.iter()
                .filter(|progress| matches!(progress, ImageProgress::Warning(_)))
                .count()
        };
        assert_eq!(warnings(&ground).await, 0, "it was pulled just now");
        ground.clock.advance(CHECK_INTERVAL);
        assert_eq!(warnings(&ground).await, 1);
        assert_eq!(warnings(&ground).await, 0, "it was tried just now");
        ground.clock.advance(Duration::from_hours(1));
        assert_eq!(warnings(&ground).await, 1);
    });
}

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

async fn registry(env: &ImageTestEnv) -> (FakeRegistry, String) {
    let architecture = env.engine.info().await.unwrap().architecture;
    let registry =
        FakeRegistry::start(&format!("ralph-test/{}", env.unique_part), &architecture).await;
    env.track(&registry.image);
    (registry, architecture)
}

/// Tags an image with the agent image's name, as if it had been built on the registry's base.
async fn pull_scenario(env: &ImageTestEnv) -> PullScenario {
    let (registry, architecture) = registry(env).await;
    env.images.pull(&registry.image, &mut |_| {}).await.unwrap();
    let on = Some(&registry.image);
    let tag = env
        .images
        .base_tag(AgentImage::Plain, on)
        .await
        .unwrap()
        .unwrap();
    env.images
        .tag(&registry.image, &env.track(&tag))
        .await
        .unwrap();
    PullScenario {
        registry,
        architecture,
        tag,
    }
}

async fn ensure(
    env: &ImageTestEnv,
    on: &ImageName,
    effort: ImageEffort,
) -> (Result<ImageName, ImageError>, Vec<ImageProgress>) {
    let mut reports = Vec::new();
    let result = env
        .images
        .ensure_base(AgentImage::Plain, Some(on), effort, &mut |progress| {
            if !matches!(progress, ImageProgress::Transfer { .. }) {
                reports.push(progress);
            }
        })
        .await;
    (result, reports)
}

#[test]
fn an_image_is_pulled() {
    with_engine(async |env| {
        let (registry, architecture) = registry(&env).await;
        let digest = registry.publish("first", &architecture);
        let mut reports = Vec::new();
        env.images
            .pull(&registry.image, &mut |progress| reports.push(progress))
            .await
            .unwrap();
        assert_eq!(
            reports[0],
            ImageProgress::Started(format!("pulling image `{}`", registry.image))
        );
        let found = env.images.inspect(&registry.image).await.unwrap().unwrap();
        assert_eq!((found.digest(), found.is_pulled), (digest.as_str(), true));
    });
}

#[test]
fn an_image_missing_from_the_registry_is_reported() {
    with_engine(async |env| {
        let (registry, _) = registry(&env).await;
        let other = ImageName::parse(&format!("{}:none", registry.image.repository())).unwrap();
        let error = env.images.pull(&other, &mut |_| {}).await.unwrap_err();
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
    with_engine(async |env| {
        let (registry, _) = registry(&env).await;
        let (result, reports) = ensure(&env, &registry.image, ImageEffort::Reuse).await;
        // It contains no programs, so the following build fails.
        assert!(
            matches!(result, Err(ImageError::Build { .. })),
            "{result:?}"
        );
        assert_eq!(
            built(&reports)[0],
            format!("pulling image `{}`", registry.image)
        );

        let gone = ImageName::parse("127.0.0.1:1/ralph-test/none:1").unwrap();
        let (result, _) = ensure(&env, &gone, ImageEffort::Reuse).await;
        let text = result.unwrap_err().to_string();
        assert!(
            text.starts_with(&format!("cannot pull image `{gone}`: ")),
            "{text}"
        );
        assert!(text.contains("connection refused"), "{text}");
    });
}

#[test]
fn newer_versions_are_checked_every_seven_days() {
    with_engine(async |env| {
        let PullScenario { registry, tag, .. } = pull_scenario(&env).await;
        let on = &registry.image;
        let pulling = ImageProgress::Started(format!("pulling image `{on}`"));
        let checks_registry = async |env: &ImageTestEnv, effort| {
            let before = registry.request_count();
            let (result, reports) = ensure(env, on, effort).await;
            assert_eq!(result.unwrap(), tag);
            assert_eq!(
                reports.contains(&pulling),
                registry.request_count() > before
            );
            registry.request_count() > before
        };
        assert!(
            !checks_registry(&env, ImageEffort::Reuse).await,
            "it was pulled just now"
        );
        env.clock
            .advance(CHECK_INTERVAL.checked_sub(SECOND).unwrap());
        assert!(!checks_registry(&env, ImageEffort::Reuse).await);
        env.clock.advance(SECOND);
        assert!(checks_registry(&env, ImageEffort::Reuse).await);
        assert!(!checks_registry(&env, ImageEffort::Reuse).await);
    });
}

#[test]
fn a_newer_version_builds_another_image_and_rebuild_checks_immediately() {
    with_engine(async |env| {
        let scenario = pull_scenario(&env).await;
        let on = &scenario.registry.image;
        let (result, _) = ensure(&env, on, ImageEffort::Reuse).await;
        assert_eq!(result.unwrap(), scenario.tag);
        let digest = scenario.registry.publish("second", &scenario.architecture);
        let (result, _) = ensure(&env, on, ImageEffort::Reuse).await;
        assert_eq!(result.unwrap(), scenario.tag, "no check is due yet");
        let (_, reports) = ensure(&env, on, ImageEffort::Rebuild).await;
        let agent = AgentImage::Plain;
        let tag = image::base_tag(agent, agent.dockerfile(), &digest);
        assert_eq!(
            built(&reports),
            [
                format!("pulling image `{on}`"),
                format!("building image `{tag}`")
            ]
        );
    });
}

#[test]
fn without_a_network_the_local_image_is_used() {
    with_engine(async |env| {
        let PullScenario { registry, tag, .. } = pull_scenario(&env).await;
        let on = registry.image.clone();
        drop(registry);
        let warnings = async |env: &ImageTestEnv| {
            let (result, reports) = ensure(env, &on, ImageEffort::Reuse).await;
            assert_eq!(result.unwrap(), tag);
            reports
                .iter()
                .filter(|progress| matches!(progress, ImageProgress::Warning(_)))
                .count()
        };
        assert_eq!(warnings(&env).await, 0, "it was pulled just now");
        env.clock.advance(CHECK_INTERVAL);
        assert_eq!(warnings(&env).await, 1);
        assert_eq!(warnings(&env).await, 0, "it was tried just now");
        env.clock.advance(Duration::from_hours(1));
        assert_eq!(warnings(&env).await, 1);
    });
}

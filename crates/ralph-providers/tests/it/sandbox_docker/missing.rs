//! Missing prerequisites of a sandbox: an image, a matching machine, disk space.

use ralph_core::ports::{SandboxError, SandboxProvider as _, SandboxSpec};
use ralph_providers::sandbox::DockerLimits;
use ralph_test::skip_without_docker;

use super::fixture::{DockerTestEnv, sh};
use super::image::TemporaryImage;

/// Tries to create a sandbox, which must fail without leaving anything behind, and returns the
/// error.
async fn create_error(env: &DockerTestEnv) -> (String, String) {
    let created = env.provider.create(&SandboxSpec::default()).await;
    env.assert_empty();
    match created.map(drop) {
        Err(SandboxError::Provider(problem)) => (problem.what, problem.fix),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_missing_image_is_named_with_the_way_to_build_it() {
    if skip_without_docker() {
        return;
    }
    let env =
        DockerTestEnv::with_settings(|settings| settings.image = "ralph-test-hostile:none".into());
    let (what, fix) = create_error(&env).await;
    assert_eq!(what, "there is no image `ralph-test-hostile:none`");
    assert!(fix.contains("`ralph image build`"), "{fix}");

    // Also one that disappears after it was found.
    let image = TemporaryImage::build("LABEL vanishes=soon");
    let env = DockerTestEnv::with_settings(|settings| settings.image.clone_from(&image.tag));
    let first = env.sandbox().await;
    let second = env.sandbox().await;
    first.remove().await.unwrap();
    let tag = image.tag.clone();
    drop(image);
    let missing = format!("there is no image `{tag}`");
    let created = env.provider.create(&SandboxSpec::default()).await.map(drop);
    assert_eq!(created.unwrap_err().to_string(), missing);
    // Existing sandboxes can still be listed, used and removed, but not recreated.
    for provider in [&env.provider, &env.second_provider()] {
        assert_eq!(provider.list().await.unwrap().len(), 1);
    }
    assert_eq!(sh(&*second, "echo works").await, "works\n");
    for provider in [&env.provider, &env.second_provider()] {
        let attached = provider.attach(second.id()).await.map(drop);
        assert_eq!(attached.unwrap_err().to_string(), missing);
    }
    assert_eq!(sh(&*second, "echo works").await, "works\n");
    env.finish().await;
}

#[tokio::test]
async fn an_image_for_another_machine_is_not_started() {
    if skip_without_docker() {
        return;
    }
    let image = TemporaryImage::bare("s390x");
    let env = DockerTestEnv::with_settings(|settings| settings.image.clone_from(&image.tag));
    let (what, fix) = create_error(&env).await;
    assert!(
        what.contains("is for `s390x`, the Docker Engine's machine is"),
        "{what}"
    );
    assert!(fix.contains("`ralph image build`"), "{fix}");
}

#[tokio::test]
async fn limits_beyond_the_machine_are_reported_by_preflight() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::with_settings(|settings| {
        settings.limits = DockerLimits {
            cpus: Some(4096.0),
            memory: Some(1 << 50),
            ..DockerLimits::default()
        };
    });
    let problems = env.provider.preflight().await;
    let what: Vec<&str> = problems
        .iter()
        .map(|problem| problem.what.as_str())
        .collect();
    assert_eq!(what.len(), 2, "{what:?}");
    assert!(
        what[0].starts_with(
            "the sandbox is configured for 4096 processors, but the Docker Engine's machine has "
        ),
        "{what:?}"
    );
    assert!(
        what[1].starts_with("the sandbox is configured for 1048576.0 GiB of memory, "),
        "{what:?}"
    );
    create_error(&env).await;
}

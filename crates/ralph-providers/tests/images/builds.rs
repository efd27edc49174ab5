//! Failing builds and invalid images, and their error messages.

use std::time::Duration;

use bollard::query_parameters::ListContainersOptionsBuilder;
use ralph_core::image::{ImageEffort, ImageName};
use ralph_providers::docker::DockerError;
use ralph_providers::docker::images::{ImageError, ImageProgress};

use crate::fixture::{BOOKWORM, ImageTestEnv, with_engine};

async fn failure(env: &ImageTestEnv, dockerfile: &str) -> ImageError {
    env.images
        .build_file(&env.name("fails"), dockerfile.as_bytes(), None, &mut |_| {})
        .await
        .unwrap_err()
}

#[test]
fn an_engine_reports_its_machine() {
    with_engine(async |env| {
        let info = env.engine.info().await.unwrap();
        assert_eq!(info.os_type, "linux");
        assert!(info.cpus > 0 && info.memory > 0, "{info:?}");
        assert!(info.data_root.starts_with('/'), "{info:?}");
    });
}

#[test]
fn a_failed_step_is_reported_with_its_last_lines() {
    with_engine(async |env| {
        let step = "{ for n in $(seq 40); do echo line $n; done; echo at last; } >&2; exit 7";
        let error = failure(&env, &format!("FROM {BOOKWORM}\nRUN {step}\n")).await;
        let expected = format!(
            "cannot build image `{}`: step 2 of 3, `RUN {{ for n in $(seq 40); do echo line $n; done; echo at las…`, failed with exit code 7",
            env.name("fails")
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.tail().len(), 20);
        assert_eq!(error.tail().last().unwrap(), "at last");
        assert!(!env.images.exists(&env.name("fails")).await.unwrap());
    });
}

#[test]
fn an_invalid_dockerfile_is_reported_with_the_engines_message() {
    with_engine(async |env| {
        let error = failure(&env, &format!("FROM {BOOKWORM}\nRUNN true\n")).await;
        let text = error.to_string();
        assert!(
            text.to_lowercase().contains("unknown instruction: runn"),
            "{text}"
        );
    });
}

#[test]
fn a_full_disk_is_reported_with_its_directory() {
    with_engine(async |env| {
        let step = "echo 'tar: write error: No space left on device' >&2; exit 2";
        let error = failure(&env, &format!("FROM {BOOKWORM}\nRUN {step}\n")).await;
        let data_root = env.engine.info().await.unwrap().data_root;
        let expected = format!(
            "cannot build image `{}`: no space left in `{data_root}`, where the Docker Engine keeps its data",
            env.name("fails")
        );
        assert_eq!(error.problem().what, expected);
    });
}

#[test]
fn a_named_image_that_is_missing() {
    with_engine(async |env| {
        let missing = env.name("missing");
        let (result, reports) = env
            .ensure(&env.recipe(&missing, &[]), ImageEffort::Reuse)
            .await;
        let error = result.unwrap_err();
        assert!(
            matches!(error, ImageError::Engine(DockerError::ImageMissing { .. })),
            "{error}"
        );
        assert_eq!(
            error.problem().what,
            format!("there is no image `{missing}`")
        );
        assert_eq!(reports, vec![]);
        assert_eq!(env.images.inspect(&missing).await.unwrap(), None);
    });
}

#[test]
fn every_kind_of_image_can_be_inspected() {
    with_engine(async |env| {
        let image = env.name("kinds");
        env
            .build(
                &image,
                &format!(
                    "FROM {BOOKWORM}\nEXPOSE 80 53/udp\nVOLUME /data /more\nENV A=b\nHEALTHCHECK CMD true\n\
                     ENTRYPOINT [\"sh\"]\nCMD [\"-c\", \"true\"]\nONBUILD LABEL x=y\nUSER nobody\n"
                ),
            )
            .await;
        let found = env.images.inspect(&image).await.unwrap().unwrap();
        assert_eq!((found.user.as_str(), found.is_pulled), ("nobody", false));
        assert_eq!(found.tags, [image.to_string()]);
        assert!(found.created.is_some() && found.size > 0, "{found:?}");
        let other = env.name("other");
        env.images.tag(&image, &other).await.unwrap();
        assert_eq!(env.id(&other).await, found.id);
        env.images.remove(&image).await.unwrap();
        env.images.remove(&image).await.unwrap();
        let found = env.images.inspect(&other).await.unwrap().unwrap();
        assert_eq!(found.tags, [other.to_string()]);
    });
}

#[test]
fn an_image_for_another_machine_is_refused() {
    with_engine(async |env| {
        let image = env.name("foreign");
        let file = env.checks_directory.path().join("image.tar");
        std::fs::write(&file, saved(&image, "s390x")).unwrap();
        let loaded = env.images.load(&file, &mut |_| {}).await.unwrap();
        assert_eq!(loaded, std::slice::from_ref(&image));
        let (result, _) = env
            .ensure(&env.recipe(&image, &[]), ImageEffort::Reuse)
            .await;
        let needs = env.engine.info().await.unwrap().architecture;
        let expected = format!(
            "image `{image}` cannot run here: it is for `s390x`, the Docker Engine's machine is `{needs}`"
        );
        assert_eq!(result.unwrap_err().to_string(), expected);
    });
}

#[test]
fn a_file_that_is_not_an_image_is_not_loaded() {
    with_engine(async |env| {
        let file = env.checks_directory.path().join("image.tar");
        let error = env.images.load(&file, &mut |_| {}).await.unwrap_err();
        assert!(matches!(error, ImageError::Read { .. }), "{error}");
        std::fs::write(&file, "not an image").unwrap();
        let error = env.images.load(&file, &mut |_| {}).await.unwrap_err();
        assert!(
            error.to_string().starts_with("cannot load images from `"),
            "{error}"
        );
    });
}

#[test]
fn a_dropped_build_is_cancelled() {
    with_engine(async |env| {
        let sleep = format!("sleep 600 # {}", env.unique_part);
        let image = env.name("sleeps");
        let dockerfile = format!("FROM {BOOKWORM}\nRUN {sleep}\n");
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut sender = Some(sender);
        {
            let mut watcher = |progress| {
                if matches!(progress, ImageProgress::Step { number: 2, .. }) {
                    sender.take().map(|sender| sender.send(()));
                }
            };
            let build = env
                .images
                .build_file(&image, dockerfile.as_bytes(), None, &mut watcher);
            tokio::select! {
                result = build => panic!("{result:?}"),
                started = async {
                    receiver.await.unwrap();
                    wait_until(&env, &sleep, 1).await;
                } => started,
            }
        }
        wait_until(&env, &sleep, 0).await;
    });
}

/// Waits until this many containers run a command.
async fn wait_until(env: &ImageTestEnv, command: &str, number: usize) {
    for _ in 0..600 {
        let options = ListContainersOptionsBuilder::new().build();
        let containers = env
            .engine
            .api()
            .list_containers(Some(options))
            .await
            .unwrap();
        let running = containers
            .iter()
            .filter(|container| {
                container
                    .command
                    .as_deref()
                    .is_some_and(|text| text.contains(command))
            })
            .count();
        if running == number {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("there are not {number} containers with `{command}`");
}

/// Returns an archive in the format of `docker save`: an empty image for one architecture.
fn saved(image: &ImageName, architecture: &str) -> Vec<u8> {
    let mut layer = tar::Builder::new(Vec::new());
    layer.finish().unwrap();
    let layer = layer.into_inner().unwrap();
    let digest = ralph_core::id::Digest::compute(&layer);
    let config = serde_json::json!({
        "architecture": architecture, "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest.as_str())]},
    });
    let manifest = serde_json::json!([
        {"Config": "config.json", "RepoTags": [image.as_str()], "Layers": ["layer.tar"]}
    ]);
    let mut archive = tar::Builder::new(Vec::new());
    for (path, bytes) in [
        ("layer.tar", layer),
        ("config.json", config.to_string().into_bytes()),
        ("manifest.json", manifest.to_string().into_bytes()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, &bytes[..]).unwrap();
    }
    archive.into_inner().unwrap()
}

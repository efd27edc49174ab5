//! Failing builds and invalid images, and their error messages.

use std::time::Duration;

use bollard::query_parameters::ListContainersOptionsBuilder;
use ralph_core::image::{ImageEffort, ImageName};
use ralph_providers::docker::DockerError;
use ralph_providers::docker::images::{ImageError, ImageProgress};

use crate::fixture::{BOOKWORM, ImageTestEnv, with_engine};

async fn failure(ground: &ImageTestEnv, dockerfile: &str) -> ImageError {
    ground
        .images
        .build_file(
            &ground.name("fails"),
            dockerfile.as_bytes(),
            None,
            &mut |_| {},
        )
        .await
        .unwrap_err()
}

#[test]
fn an_engine_reports_its_machine() {
    with_engine(async |ground| {
        let facts = ground.engine.info().await.unwrap();
        assert_eq!(facts.os_type, "linux");
        assert!(facts.cpus > 0 && facts.memory > 0, "{facts:?}");
        assert!(facts.data_root.starts_with('/'), "{facts:?}");
    });
}

#[test]
fn a_failed_step_is_reported_with_its_last_lines() {
    with_engine(async |ground| {
        let step = "{ for n in $(seq 40); do echo line $n; done; echo at last; } >&2; exit 7";
        let error = failure(&ground, &format!("FROM {BOOKWORM}\nRUN {step}\n")).await;
        let expected = format!(
            "cannot build image `{}`: step 2 of 3, `RUN {{ for n in $(seq 40); do echo line $n; done; echo at las…`, failed with exit code 7",
            ground.name("fails")
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.tail().len(), 20);
        assert_eq!(error.tail().last().unwrap(), "at last");
        assert!(!ground.images.exists(&ground.name("fails")).await.unwrap());
    });
}

#[test]
fn an_invalid_dockerfile_is_reported_with_the_engines_message() {
    with_engine(async |ground| {
        let error = failure(&ground, &format!("FROM {BOOKWORM}\nRUNN true\n")).await;
        let text = error.to_string();
        assert!(
            text.to_lowercase().contains("unknown instruction: runn"),
            "{text}"
        );
    });
}

#[test]
fn a_full_disk_is_reported_with_its_directory() {
    with_engine(async |ground| {
        let step = "echo 'tar: write error: No space left on device' >&2; exit 2";
        let error = failure(&ground, &format!("FROM {BOOKWORM}\nRUN {step}\n")).await;
        let data_root = ground.engine.info().await.unwrap().data_root;
        let expected = format!(
            "cannot build image `{}`: no space left in `{data_root}`, where the Docker Engine keeps its data",
            ground.name("fails")
        );
        assert_eq!(error.problem().what, expected);
    });
}

#[test]
fn a_named_image_that_is_missing() {
    with_engine(async |ground| {
        let missing = ground.name("missing");
        let (ended, told) = ground
            .ensure(&ground.recipe(&missing, &[]), ImageEffort::Reuse)
            .await;
        let error = ended.unwrap_err();
        assert!(
            matches!(error, ImageError::Engine(DockerError::ImageMissing { .. })),
            "{error}"
        );
        assert_eq!(
            error.problem().what,
            format!("there is no image `{missing}`")
        );
        assert_eq!(told, vec![]);
        assert_eq!(ground.images.inspect(&missing).await.unwrap(), None);
    });
}

#[test]
fn every_kind_of_image_can_be_inspected() {
    with_engine(async |ground| {
        let image = ground.name("kinds");
        ground
            .build(
                &image,
                &format!(
                    "FROM {BOOKWORM}\nEXPOSE 80 53/udp\nVOLUME /data /more\nENV A=b\nHEALTHCHECK CMD true\n\
                     ENTRYPOINT [\"sh\"]\nCMD [\"-c\", \"true\"]\nONBUILD LABEL x=y\nUSER nobody\n"
                ),
            )
            .await;
        let found = ground.images.inspect(&image).await.unwrap().unwrap();
        assert_eq!((found.user.as_str(), found.is_pulled), ("nobody", false));
        assert_eq!(found.tags, [image.to_string()]);
        assert!(found.created.is_some() && found.size > 0, "{found:?}");
        let other = ground.name("other");
        ground.images.tag(&image, &other).await.unwrap();
        assert_eq!(ground.id(&other).await, found.id);
        ground.images.remove(&image).await.unwrap();
        ground.images.remove(&image).await.unwrap();
        let found = ground.images.inspect(&other).await.unwrap().unwrap();
        assert_eq!(found.tags, [other.to_string()]);
    });
}

#[test]
fn an_image_for_another_machine_is_refused() {
    with_engine(async |ground| {
        let image = ground.name("foreign");
        let file = ground.checks_directory.path().join("image.tar");
        std::fs::write(&file, saved(&image, "s390x")).unwrap();
        let loaded = ground.images.load(&file, &mut |_| {}).await.unwrap();
        assert_eq!(loaded, std::slice::from_ref(&image));
        let (ended, _) = ground
            .ensure(&ground.recipe(&image, &[]), ImageEffort::Reuse)
            .await;
        let needs = ground.engine.info().await.unwrap().architecture;
        let expected = format!(
            "image `{image}` cannot run here: it is for `s390x`, the Docker Engine's machine is `{needs}`"
        );
        assert_eq!(ended.unwrap_err().to_string(), expected);
    });
}

#[test]
fn a_file_that_is_not_an_image_is_not_loaded() {
    with_engine(async |ground| {
        let file = ground.checks_directory.path().join("image.tar");
        let error = ground.images.load(&file, &mut |_| {}).await.unwrap_err();
        assert!(matches!(error, ImageError::Read { .. }), "{error}");
        std::fs::write(&file, "not an image").unwrap();
        let error = ground.images.load(&file, &mut |_| {}).await.unwrap_err();
        assert!(
            error.to_string().starts_with("cannot load images from `"),
            "{error}"
        );
    });
}

#[test]
fn a_dropped_build_is_cancelled() {
    with_engine(async |ground| {
        let sleep = format!("sleep 600 # {}", ground.unique_part);
        let image = ground.name("sleeps");
        let dockerfile = format!("FROM {BOOKWORM}\nRUN {sleep}\n");
        let (begun, seen) = tokio::sync::oneshot::channel();
        let mut begun = Some(begun);
        {
            let mut watcher = |progress| {
                if matches!(progress, ImageProgress::Step { number: 2, .. }) {
                    begun.take().map(|begun| begun.send(()));
                }
            };
            let build = ground
                .images
                .build_file(&image, dockerfile.as_bytes(), None, &mut watcher);
            tokio::select! {
                ended = build => panic!("{ended:?}"),
                started = async {
                    seen.await.unwrap();
                    wait_until(&ground, &sleep, 1).await;
                } => started,
            }
        }
        wait_until(&ground, &sleep, 0).await;
    });
}

/// Waits until this many containers run a command.
async fn wait_until(ground: &ImageTestEnv, command: &str, number: usize) {
    for _ in 0..600 {
        let options = ListContainersOptionsBuilder::new().build();
        let containers = ground
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

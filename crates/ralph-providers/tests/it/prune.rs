//! Unused objects on the Docker Engine are found and removed, and nothing else.

use std::process::Command;

use jiff::{SignedDuration, Timestamp};
use ralph_core::ports::{SandboxProvider as _, SandboxSpec};
use ralph_providers::sandbox::{DockerProvider, DockerSettings, UnusedVolume};
use ralph_test::{BASE_IMAGE, PrivateDockerEngine, skip_without_docker};

const OLD: &str = "ralph-guest-0000000000000000";
const USED: &str = "ralph-guest-1111111111111111";
const HALF: &str = "ralph-guest-2222222222222222";

fn docker(engine: &PrivateDockerEngine, args: &[&str]) -> String {
    let output = Command::new("docker")
        .args(["--host", &engine.host()])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "docker {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn volumes(engine: &PrivateDockerEngine) -> Vec<String> {
    let text = docker(engine, &["volume", "ls", "--quiet"]);
    let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
    names.sort();
    names
}

/// Creates guest volumes of other builds: an unused one, one used by a stopped container, one with
/// only its marker left; and objects with similar names. Returns a leftover fill container.
fn create_leftovers(engine: &PrivateDockerEngine) -> String {
    let create = |name: &str, label: &str| {
        let label = format!("ralph.guest={label}");
        docker(engine, &["volume", "create", "--label", &label, name]);
    };
    for program in [OLD, USED] {
        create(program, program);
        create(&format!("{program}-filled"), program);
    }
    create(&format!("{HALF}-filled"), HALF);
    docker(engine, &["volume", "create", "ralph-guest-lookalike"]);
    let mount = format!("{USED}:/x");
    docker(engine, &["create", "--volume", &mount, BASE_IMAGE, "true"]);
    let label = format!("ralph.guest={OLD}");
    docker(engine, &["create", "--label", &label, BASE_IMAGE, "true"])
}

#[tokio::test]
async fn unused_guest_volumes_of_other_builds_are_removed() {
    if skip_without_docker() {
        return;
    }
    let engine = PrivateDockerEngine::start().unwrap();
    let state = tempfile::tempdir().unwrap();
    let mut settings = DockerSettings::new(BASE_IMAGE, state.path());
    settings.host = Some(engine.host());
    let provider = DockerProvider::new(settings);
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    sandbox.remove().await.unwrap();
    let mut expected = volumes(&engine);
    assert_eq!(expected.len(), 2, "the program of this build: {expected:?}");
    let fill_container = create_leftovers(&engine);

    let now = Timestamp::now();
    let hour = SignedDuration::from_hours(1);
    assert_eq!(provider.unused_volumes(now - hour).await.unwrap(), []);
    let unused = provider.unused_volumes(now + hour).await.unwrap();
    let program = |name: &str| UnusedVolume::GuestVolume(name.to_owned());
    assert_eq!(
        unused,
        [
            program(OLD),
            program(HALF),
            UnusedVolume::FillContainer(fill_container)
        ]
    );
    for object in &unused {
        provider.remove_unused(object).await.unwrap();
        // Removing twice is not an error.
        provider.remove_unused(object).await.unwrap();
    }
    // In use again in the meantime.
    provider.remove_unused(&program(USED)).await.unwrap();
    assert_eq!(provider.unused_volumes(now + hour).await.unwrap(), []);
    expected.extend([USED, &format!("{USED}-filled"), "ralph-guest-lookalike"].map(str::to_owned));
    expected.sort();
    assert_eq!(volumes(&engine), expected);
    let containers = docker(&engine, &["ps", "--all", "--quiet"]);
    assert_eq!(containers.lines().count(), 1);
}

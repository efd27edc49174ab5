//! Sandboxes of dead ralph processes.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ralph_core::ports::{Labels, SandboxId, SandboxProvider as _, SandboxSpec};
use ralph_providers::sandbox::{DockerProvider, DockerSettings, ExistingSandbox};
use ralph_test::{BASE_IMAGE, skip_without_docker};

use super::fixture::{DockerTestEnv, object_name, sh};

/// The state directory of the process that is killed.
const STATE: &str = "RALPH_TEST_STATE";
const TEST: &str = "sandbox_docker::owner::sandboxes_of_a_killed_ralph_are_found";

/// Creates a sandbox, runs a command in it, and kills this process meanwhile.
async fn leave_behind(state: &Path) {
    let provider = DockerProvider::new(DockerSettings::new(BASE_IMAGE, state));
    let spec = SandboxSpec {
        labels: Labels::from([("run".into(), "left".into())]),
        ..SandboxSpec::default()
    };
    let sandbox = provider.create(&spec).await.unwrap();
    sh(&*sandbox, "echo kept > file; (setsid sleep 600 &)").await;
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .unwrap();
}

async fn found(env: &DockerTestEnv) -> Vec<ExistingSandbox> {
    let mut found = env.provider.list_all().await.unwrap();
    found.retain(|found| found.state_directory == env.state());
    found
}

fn owned(found: &[ExistingSandbox]) -> Vec<(SandboxId, bool)> {
    found
        .iter()
        .map(|found| (found.id.clone(), found.is_orphaned))
        .collect()
}

#[tokio::test]
async fn sandboxes_of_a_killed_ralph_are_found() {
    if let Some(state) = std::env::var_os(STATE) {
        return leave_behind(Path::new(&state)).await;
    }
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let status = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact"])
        .env(STATE, env.state())
        .output()
        .unwrap()
        .status;
    assert!(!status.success());
    let left = found(&env).await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].is_orphaned, "{left:?}");
    assert_eq!(
        left[0].labels,
        Labels::from([("run".into(), "left".into())])
    );
    let id = left[0].id.clone();

    // Nothing runs in it any more, without any cleanup.
    let deadline = Instant::now() + Duration::from_secs(10);
    let running = [
        "inspect",
        "--format",
        "{{.State.Running}}",
        &object_name(&id),
    ];
    while env.docker(&running) != "false" {
        assert!(Instant::now() < deadline, "the container still runs");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    // The process that takes it over becomes its owner, and is alive.
    let mine = env.sandbox().await;
    let mut expected = vec![(id.clone(), true), (mine.id().clone(), false)];
    expected.sort_by(|a, b| a.0.0.cmp(&b.0.0));
    assert_eq!(owned(&found(&env).await), expected);
    let adopted = env.provider.attach(&id).await.unwrap().unwrap();
    assert_eq!(sh(&*adopted, "cat file").await, "kept\n");
    for (_, is_dead) in &mut expected {
        *is_dead = false;
    }
    assert_eq!(owned(&found(&env).await), expected);

    // An unwanted one is removed without being started.
    env.provider.discard(&id).await.unwrap();
    env.provider.discard(&id).await.unwrap();
    assert_eq!(owned(&found(&env).await), [(mine.id().clone(), false)]);
    env.finish().await;
}

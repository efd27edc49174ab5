//! A Docker Engine that is killed and restarted while a command runs.

use std::time::{Duration, Instant};

use ralph_core::ports::{Exec, SandboxError, SandboxProvider as _, SandboxSpec, WriteMode};
use ralph_providers::sandbox::DockerTransport;
use ralph_test::{PrivateDockerEngine, skip_without_docker};

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, repo, sh, try_run};

/// Time limit for the outcome of a command.
const OUTCOME_TIMEOUT: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[expect(clippy::too_many_lines, reason = "a table of cases in one sandbox")]
async fn an_engine_that_comes_back_brings_its_sandboxes() {
    if skip_without_docker() {
        return;
    }
    let mut engine = tokio::task::spawn_blocking(|| PrivateDockerEngine::start().unwrap())
        .await
        .unwrap();
    let at = |transport| {
        let host = engine.host();
        DockerTestEnv::with_settings(move |settings| {
            settings.host = Some(host);
            settings.transport = transport;
        })
    };
    let envs = [at(DockerTransport::Auto), at(DockerTransport::Attached)];
    let sandboxes = [envs[0].sandbox().await, envs[1].sandbox().await];
    for sandbox in &sandboxes {
        sandbox
            .write(&repo("file"), b"kept", WriteMode::Replace)
            .await
            .unwrap();
    }
    let restart = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_millis(500));
        engine.kill().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        engine.restart().unwrap();
        engine
    });
    let started = Instant::now();
    let long = || Exec::shell("echo begun; sleep 600", TEST_TIMEOUT * 10);
    let (one, other) = tokio::join!(
        try_run(&*sandboxes[0], long()),
        try_run(&*sandboxes[1], long()),
    );
    assert!(
        started.elapsed() < OUTCOME_TIMEOUT,
        "{:?}",
        started.elapsed()
    );
    for (outcome, output) in [one, other] {
        assert!(
            matches!(outcome, Err(SandboxError::Interrupted { .. })),
            "{outcome:?}"
        );
        assert_eq!(output.stdout_text(), "begun\n");
    }
    for sandbox in &sandboxes {
        assert_eq!(sh(&**sandbox, "cat file; echo works").await, "keptworks\n");
    }
    let engine = restart.await.unwrap();

    // Without an engine, the provider reports that and how to fix it.
    drop(sandboxes);
    let gone = DockerTestEnv::with_settings(|settings| settings.host = Some(engine.host()));
    for env in envs {
        env.finish().await;
    }
    tokio::task::spawn_blocking(move || drop(engine))
        .await
        .unwrap();
    let problems = gone.provider.preflight().await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0]
            .what
            .starts_with("no Docker Engine is running here: socket `"),
        "{problems:?}"
    );
    assert!(
        problems[0]
            .fix
            .starts_with("start Docker, or set `DOCKER_HOST`"),
        "{problems:?}"
    );
    let created = gone
        .provider
        .create(&SandboxSpec::default())
        .await
        .map(drop);
    assert!(
        matches!(created, Err(SandboxError::Provider(_))),
        "{created:?}"
    );
}

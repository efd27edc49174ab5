//! Containers that are paused, killed or removed while a command runs.

use std::time::{Duration, Instant};

use ralph_core::ports::{
    Exec, ExecOutcome, ExecStatus, Sandbox, SandboxError, SandboxProvider as _, WriteMode,
};
use ralph_providers::sandbox::DockerLimits;
use ralph_test::skip_without_docker;

use super::fixture::{
    DockerTestEnv, TEST_TIMEOUT, object_name, other_processes, repo, run, sh, try_run,
};

/// A command that reports its start and then waits.
const LONG: &str = "echo kept > file; (setsid sleep 60 &); echo begun > begun; sleep 60";

/// Runs a command, disturbs its container as soon as it runs, and returns the outcome.
async fn run_and_disturb(
    env: &DockerTestEnv,
    sandbox: &dyn Sandbox,
    exec: Exec,
    disturbance: &[&str],
) -> Result<ExecOutcome, SandboxError> {
    let container = object_name(sandbox.id());
    let disturb = async {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while sandbox.read(&repo("begun"), 100).await.is_err() {
            assert!(Instant::now() < deadline, "the command has not begun");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        env.docker(&[disturbance, &[&container]].concat());
    };
    let ((outcome, _), ()) = tokio::join!(try_run(sandbox, exec), disturb);
    outcome
}

fn interruption_reason(outcome: Result<ExecOutcome, SandboxError>) -> String {
    match outcome {
        Err(SandboxError::Interrupted { why }) => why,
        other => panic!("{other:?}"),
    }
}

/// Asserts that a sandbox works as before, with its files and without its old processes.
async fn assert_usable(sandbox: &dyn Sandbox) {
    assert_eq!(sh(sandbox, "cat file; rm -f begun file").await, "kept\n");
    assert_eq!(other_processes(sandbox).await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_causes_of_death_are_distinguished() {
    if skip_without_docker() {
        return;
    }
    for env in [DockerTestEnv::new(), DockerTestEnv::attached()] {
        let sandbox = env.sandbox().await;
        // The command kills itself.
        let (outcome, _) = run(&*sandbox, Exec::shell("kill -9 $$", TEST_TIMEOUT)).await;
        assert_eq!(outcome.ended, ExecStatus::Signalled(9));
        // The container is killed from outside.
        let outcome =
            run_and_disturb(&env, &*sandbox, Exec::shell(LONG, TEST_TIMEOUT), &["kill"]).await;
        assert_eq!(
            interruption_reason(outcome),
            "the sandbox's container was killed from outside"
        );
        assert_usable(&*sandbox).await;
        // The container is stopped.
        let outcome =
            run_and_disturb(&env, &*sandbox, Exec::shell(LONG, TEST_TIMEOUT), &["stop"]).await;
        assert_eq!(
            interruption_reason(outcome),
            "the sandbox's container stopped with exit code 0"
        );
        assert_usable(&*sandbox).await;
        // While no command runs, the restart is invisible.
        env.docker(&["kill", &object_name(sandbox.id())]);
        assert_eq!(sh(&*sandbox, "echo again").await, "again\n");
        env.docker(&["stop", &object_name(sandbox.id())]);
        sandbox
            .write(&repo("file"), b"x", WriteMode::Replace)
            .await
            .unwrap();
        env.finish().await;
    }
}

#[tokio::test]
async fn a_killed_container_is_not_one_without_memory() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::with_settings(|settings| {
        settings.limits = DockerLimits {
            memory: Some(64 << 20),
            ..DockerLimits::default()
        };
    });
    let sandbox = env.sandbox().await;
    let hungry = Exec::argv(["python3", "-c", "x = b'x' * (200 << 20)"], TEST_TIMEOUT);
    let (outcome, _) = run(&*sandbox, hungry).await;
    assert_eq!(outcome.ended, ExecStatus::OutOfMemory);
    // The Docker Engine remembers that and reports it for the whole container.
    let outcome =
        run_and_disturb(&env, &*sandbox, Exec::shell(LONG, TEST_TIMEOUT), &["kill"]).await;
    let expected = "the sandbox's container was killed from outside, or ran out of memory";
    assert_eq!(interruption_reason(outcome), expected);
    assert_usable(&*sandbox).await;
    env.finish().await;
}

#[tokio::test]
async fn a_paused_container_is_noticed_by_our_own_clock() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    let exec = Exec::shell(LONG, Duration::from_secs(1));
    let outcome = run_and_disturb(&env, &*sandbox, exec, &["pause"]).await;
    assert_eq!(
        interruption_reason(outcome),
        "the sandbox does not respond: its container is paused"
    );
    assert_usable(&*sandbox).await;
    env.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_container_is_gone_and_its_workspace_is_not() {
    if skip_without_docker() {
        return;
    }
    for env in [DockerTestEnv::new(), DockerTestEnv::attached()] {
        let sandbox = env.sandbox().await;
        let outcome = run_and_disturb(
            &env,
            &*sandbox,
            Exec::shell(LONG, TEST_TIMEOUT),
            &["rm", "--force"],
        )
        .await;
        assert!(
            matches!(&outcome, Err(SandboxError::Gone(id)) if id == sandbox.id()),
            "{outcome:?}"
        );
        // The state is final and reported immediately.
        let (outcome, _) = try_run(&*sandbox, Exec::shell("true", TEST_TIMEOUT)).await;
        assert!(matches!(outcome, Err(SandboxError::Gone(_))), "{outcome:?}");
        let written = sandbox.write(&repo("file"), b"x", WriteMode::Replace).await;
        assert!(matches!(written, Err(SandboxError::Gone(_))), "{written:?}");
        let again = env.provider.attach(sandbox.id()).await.unwrap().unwrap();
        assert_usable(&*again).await;
        sandbox.remove().await.unwrap();
        env.finish().await;
    }
}

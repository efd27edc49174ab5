//! Sandboxes that another ralph process takes over, in every state of their containers.

use std::time::{Duration, Instant};

use ralph_core::ports::{Exec, Sandbox, SandboxError, SandboxProvider as _, WriteMode};
use ralph_providers::sandbox::DockerProvider;
use ralph_test::skip_without_docker;

use super::fixture::{
    DockerTestEnv, TEST_TIMEOUT, object_name, other_processes, repo, sh, try_run,
};

async fn take_over(provider: &DockerProvider, sandbox: &dyn Sandbox) -> Box<dyn Sandbox> {
    provider.attach(sandbox.id()).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_of_the_first_owner_end() {
    if skip_without_docker() {
        return;
    }
    for env in [DockerTestEnv::new(), DockerTestEnv::attached()] {
        let first = env.sandbox().await;
        let another = env.second_provider();
        let long = "(setsid sh -c 'while :; do echo . >> beat; sleep 0.02; done' &) ; sleep 60";
        let running = try_run(&*first, Exec::shell(long, TEST_TIMEOUT));
        let taking = async {
            while first.read(&repo("beat"), 1 << 20).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let second = take_over(&another, &*first).await;
            // Immediately, not only when the first process notices.
            assert_eq!(other_processes(&*second).await, "0");
            second
        };
        let ((outcome, _), second) = tokio::join!(running, taking);
        let error = outcome.unwrap_err().to_string();
        let expected = format!(
            "sandbox `{}` cannot be used: another ralph process uses it now",
            first.id()
        );
        assert_eq!(error, expected);

        // The first process can no longer interfere, even if it tries.
        let busy = try_run(
            &*second,
            Exec::shell("sleep 1; echo undisturbed", TEST_TIMEOUT),
        );
        let trying = async {
            for _ in 0..2 {
                let (outcome, _) = try_run(&*first, Exec::shell("touch late", TEST_TIMEOUT)).await;
                assert_eq!(outcome.unwrap_err().to_string(), expected);
                let written = first.write(&repo("late"), b"x", WriteMode::Replace).await;
                assert!(
                    matches!(written, Err(SandboxError::Provider(_))),
                    "{written:?}"
                );
            }
            drop(first);
        };
        let ((outcome, output), ()) = tokio::join!(busy, trying);
        assert!(outcome.unwrap().ended.is_success());
        assert_eq!(output.stdout_text(), "undisturbed\n");
        assert_eq!(sh(&*second, "rm beat; ls -A").await, "");
        env.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_may_be_in_any_state() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let first = env.sandbox().await;
    sh(&*first, "echo kept > file").await;
    let container = object_name(first.id());
    let volume = format!("{container}:/workspace");
    let create = [
        "create",
        "--name",
        &container,
        "--volume",
        &volume,
        "--network",
        "none",
        ralph_test::BASE_IMAGE,
        "sleep",
        "60",
    ];
    let states: [(&str, &[&[&str]]); 6] = [
        ("running", &[]),
        ("exited", &[&["kill", &container]]),
        ("paused", &[&["pause", &container]]),
        ("missing", &[&["rm", "--force", &container]]),
        // Created by another program, without anything of ralph's in it.
        ("created", &[&["rm", "--force", &container], &create]),
        (
            "strange",
            &[
                &["rm", "--force", &container],
                &create,
                &["start", &container],
            ],
        ),
    ];
    let mut handles = vec![first];
    for (state, commands) in states {
        for command in commands {
            env.docker(command);
        }
        let started = Instant::now();
        let next = take_over(&env.second_provider(), &*handles[0]).await;
        assert_eq!(
            sh(&*next, "cat file; id -u").await,
            "kept\n10001\n",
            "{state}"
        );
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{state}: {:?}",
            started.elapsed()
        );
        // The earlier handles still exist and do not interfere.
        handles.push(next);
    }
    env.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_takeovers_leave_one_owner() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let first = env.sandbox().await;
    let (one, other) = (env.second_provider(), env.second_provider());
    let (one, other) = tokio::join!(one.attach(first.id()), other.attach(first.id()));
    let mut usable = 0;
    for attached in [one, other] {
        // The loser may notice while attaching, or at its first command.
        if let Ok(Some(sandbox)) = attached {
            let (outcome, _) = try_run(&*sandbox, Exec::shell("true", TEST_TIMEOUT)).await;
            usable += u32::from(outcome.is_ok());
        }
    }
    assert_eq!(usable, 1);
    env.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_sandboxes_at_once() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let (a, b, c, d) = tokio::join!(env.sandbox(), env.sandbox(), env.sandbox(), env.sandbox());
    let all = [a, b, c, d];
    for (number, sandbox) in all.iter().enumerate() {
        sandbox
            .write(
                &repo("number"),
                number.to_string().as_bytes(),
                WriteMode::Replace,
            )
            .await
            .unwrap();
    }
    let line =
        |number: usize| format!("for i in 1 2 3 4 5 6 7 8; do cat number; done; exit {number}");
    let ran = tokio::join!(
        try_run(&*all[0], Exec::shell(line(0), TEST_TIMEOUT)),
        try_run(&*all[1], Exec::shell(line(1), TEST_TIMEOUT)),
        try_run(&*all[2], Exec::shell(line(2), TEST_TIMEOUT)),
        try_run(&*all[3], Exec::shell(line(3), TEST_TIMEOUT)),
    );
    for (number, (outcome, output)) in [ran.0, ran.1, ran.2, ran.3].into_iter().enumerate() {
        assert_eq!(
            outcome.unwrap().ended.exit_code(),
            i32::try_from(number).unwrap()
        );
        assert_eq!(output.stdout_text(), number.to_string().repeat(8));
    }
    assert_eq!(env.provider.list().await.unwrap().len(), 4);
    env.finish().await;
}

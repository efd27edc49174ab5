//! Processes that multiply, hide, and ignore signals.

use std::time::Duration;

use ralph_core::ports::{Exec, ExecStatus, Sandbox};
use ralph_providers::sandbox::DockerLimits;
use ralph_test::skip_without_docker;

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, other_processes, run, sh};

/// Long enough for a busy machine to start all processes of a command here.
const SHORT: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_fork_bomb_is_ended() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::with_settings(|settings| {
        settings.limits = DockerLimits {
            processes: 128,
            ..DockerLimits::default()
        };
    });
    let sandbox = env.sandbox().await;
    for bomb in [
        // Each process starts two more, until the limit. The shell itself forks only once, while it
        // still can: a pipe would need two forks, and the second could fail.
        "bomb() { bomb | bomb & }; (bomb) & exec sleep 600",
        // Each process has its own session, ignores all signals it can, and retries when a fork
        // fails.
        "import os, signal
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass",
    ] {
        let exec = if bomb.starts_with("import") {
            Exec::argv(["python3", "-c", bomb], SHORT)
        } else {
            Exec::shell(bomb, SHORT)
        };
        let (outcome, _) = run(&*sandbox, exec).await;
        let result = (outcome.ended, outcome.process_limit);
        assert_eq!(result, (ExecStatus::TimedOut, true), "{bomb}");
        assert_eq!(sh(&*sandbox, "echo usable").await, "usable\n");
        assert_eq!(other_processes(&*sandbox).await, "0", "{bomb}");
    }
    // The next command is not affected by the last one.
    let (outcome, _) = run(&*sandbox, Exec::shell("true | true", TEST_TIMEOUT)).await;
    assert!(!outcome.process_limit, "{outcome:?}");
    env.finish().await;
}

/// Leaves processes behind in every possible way: as a daemon, without a terminal, without an
/// environment, in its own session, with SIGTERM ignored.
const LEAVE_PROCESSES: &str = r#"
    beat='trap "" TERM HUP INT; while :; do echo . >> "$0"; sleep 0.02; done'
    (setsid sh -c "$beat" one >/dev/null 2>&1 &)
    nohup sh -c "$beat" two >/dev/null 2>&1 &
    env -i setsid sh -c "(PATH=/usr/bin:/bin; $beat) & exit" three </dev/null >/dev/null 2>&1 &
    python3 -c '
import os, resource, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/"); os.closerange(0, 256); os.environ.clear()
resource.setrlimit(10, (7, 7))  # that of file locks
os.execv("/bin/sh", ["sh", "-c", sys.argv[1], os.path.join(sys.argv[2], "four")])' "PATH=/usr/bin:/bin; $beat" "$PWD"
    while ! [ -s one ] || ! [ -s two ] || ! [ -s three ] || ! [ -s four ]; do sleep 0.01; done"#;

/// Asserts that a heartbeat was written and has stopped.
async fn assert_stopped(sandbox: &dyn Sandbox) {
    let line = "cat one two three four | wc -c; sleep 0.2; cat one two three four | wc -c; rm one two three four";
    let counts = sh(sandbox, line).await;
    let counts: Vec<&str> = counts.lines().collect();
    assert_eq!(counts[0], counts[1], "something still runs");
    assert_eq!(other_processes(sandbox).await, "0");
}

#[tokio::test]
async fn nothing_survives_its_command() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    // After a normal exit.
    let (outcome, _) = run(&*sandbox, Exec::shell(LEAVE_PROCESSES, TEST_TIMEOUT)).await;
    assert_eq!(outcome.ended, ExecStatus::Exited(0));
    assert_stopped(&*sandbox).await;
    // After a timeout.
    let line = format!("{LEAVE_PROCESSES}; trap '' TERM; while :; do sleep 1; done");
    let (outcome, _) = run(&*sandbox, Exec::shell(line, SHORT)).await;
    assert_eq!(outcome.ended, ExecStatus::TimedOut);
    assert_stopped(&*sandbox).await;
    // After the command kills itself.
    let line = format!("{LEAVE_PROCESSES}; kill -9 $$");
    let (outcome, _) = run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
    assert_eq!(outcome.ended, ExecStatus::Signalled(9));
    assert_stopped(&*sandbox).await;
    env.finish().await;
}

#[tokio::test]
async fn ending_one_command_spares_processes_of_another() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    // While another command runs, which must not be affected.
    let long = "(env -i setsid sh -c 'PATH=/usr/bin:/bin; while ! [ -f stop ]; do echo . >> other; sleep 0.02; done' </dev/null >/dev/null 2>&1 &)
        while ! [ -f stop ]; do sleep 0.02; done; sleep 0.1; echo ended";
    let short = async {
        sh(&*sandbox, "while ! [ -s other ]; do sleep 0.01; done").await;
        sh(&*sandbox, LEAVE_PROCESSES).await;
        let line = "cat one two three four | wc -c; wc -c < other; sleep 0.3; cat one two three four | wc -c; wc -c < other; touch stop";
        sh(&*sandbox, line).await
    };
    let (long, counts) = tokio::join!(sh(&*sandbox, long), short);
    assert_eq!(long, "ended\n");
    let counts: Vec<u64> = counts
        .lines()
        .map(|line| line.trim().parse().unwrap())
        .collect();
    assert_eq!(
        counts[0], counts[2],
        "a process of the short command still runs"
    );
    assert!(
        counts[1] < counts[3],
        "a process of the long command was ended"
    );
    assert_eq!(other_processes(&*sandbox).await, "0");
    env.finish().await;
}

#[tokio::test]
async fn a_command_may_kill_all_that_it_can() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    let line = "sleep 60 & kill -9 -1; echo survived; kill -9 1 2>/dev/null || echo refused; kill -TERM 1 2>/dev/null || echo refused";
    assert_eq!(sh(&*sandbox, line).await, "survived\nrefused\nrefused\n");
    let (outcome, _) = run(
        &*sandbox,
        Exec::shell("sh -c 'kill -9 -1'; echo not reached", TEST_TIMEOUT),
    )
    .await;
    assert_eq!(outcome.ended, ExecStatus::Signalled(9));
    // Stopped or without a parent to wait for it, it is killed all the same.
    let (outcome, _) = run(
        &*sandbox,
        Exec::shell("kill -STOP $$; echo not reached", SHORT),
    )
    .await;
    assert_eq!(outcome.ended, ExecStatus::TimedOut);
    let line = "python3 -c 'import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.kill(os.getppid(), 9); signal.pause()'";
    let (outcome, _) = run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
    assert_eq!(outcome.ended, ExecStatus::Signalled(9));
    assert_eq!(other_processes(&*sandbox).await, "0");
    env.finish().await;
}

//! Running out of memory.

use std::time::Duration;

use ralph_core::ports::{Exec, ExecStatus};
use ralph_providers::sandbox::DockerLimits;
use ralph_test::skip_without_docker;

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, other_processes, run, sh};

fn small_memory() -> DockerTestEnv {
    DockerTestEnv::with_settings(|settings| {
        settings.limits = DockerLimits {
            memory: Some(64 << 20),
            ..DockerLimits::default()
        };
    })
}

const HUNGRY: &str = r#"python3 -c "x = b'x' * (200 << 20); print(len(x))""#;

#[tokio::test]
async fn memory_that_ran_out_is_never_green() {
    if skip_without_docker() {
        return;
    }
    let env = small_memory();
    let sandbox = env.sandbox().await;
    for line in [
        HUNGRY.to_owned(),
        // The exit code is that of the last process and does not show it.
        format!("{HUNGRY} | cat"),
        format!("{HUNGRY}; true"),
        format!("({HUNGRY}) >/dev/null 2>&1 & wait; exit 0"),
        format!("echo before; {HUNGRY} || echo after; setsid {HUNGRY} & wait"),
    ] {
        let (outcome, _) = run(&*sandbox, Exec::shell(&line, TEST_TIMEOUT)).await;
        assert_eq!(outcome.ended, ExecStatus::OutOfMemory, "{line}");
        assert_eq!(sh(&*sandbox, "echo usable").await, "usable\n");
    }
    // Memory used by others does not count for the next command.
    let (outcome, _) = run(&*sandbox, Exec::shell("exit 7", TEST_TIMEOUT)).await;
    assert_eq!(outcome.ended, ExecStatus::Exited(7));
    assert_eq!(other_processes(&*sandbox).await, "0");
    env.finish().await;
}

#[tokio::test]
async fn a_command_that_spares_itself_is_ended_before_the_guest() {
    if skip_without_docker() {
        return;
    }
    let env = small_memory();
    let sandbox = env.sandbox().await;
    // Many small processes, each of which prefers that any other be killed.
    let line = r#"echo 0 > /proc/self/oom_score_adj; echo -1000 > /proc/self/oom_score_adj 2>/dev/null
        for i in 1 2 3 4 5 6 7 8 9 10; do
            python3 -c "
import time
kept = []
while True: kept.append(bytearray(1 << 20)); time.sleep(0.01)" &
        done; wait"#;
    let (outcome, _) = run(&*sandbox, Exec::shell(line, Duration::from_secs(3))).await;
    // The outcome is known: the guest was running the whole time.
    let known = [ExecStatus::OutOfMemory, ExecStatus::TimedOut].contains(&outcome.ended);
    assert!(known, "{outcome:?}");
    assert_eq!(sh(&*sandbox, "echo usable").await, "usable\n");
    env.finish().await;
}

/// Fills every kind of memory that outlives a process.
const LEAVE: &str = r#"import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
size = 40 << 20
segment = libc.shmget(0, size, 0o1600)
assert segment >= 0, ctypes.get_errno()
ctypes.memset(libc.shmat(segment, None, 0), 1, size)
assert libc.semget(0, 100, 0o1600) >= 0
queue = libc.msgget(0, 0o1600)
message = ctypes.create_string_buffer(b"12345678" + b"x" * 1000)
assert libc.msgsnd(queue, message, 1000, 0) == 0
os.makedirs("/dev/shm/a/b")
try:
    with open("/dev/shm/a/b/file", "wb") as file: file.write(bytes(64 << 20))
except OSError: pass
"#;

#[tokio::test]
async fn nothing_is_left_in_shared_memory_for_later_commands() {
    if skip_without_docker() {
        return;
    }
    let env = small_memory();
    let sandbox = env.sandbox().await;
    for _ in 0..3 {
        let exec = Exec::argv(["python3", "-c", LEAVE], TEST_TIMEOUT);
        let (outcome, output) = run(&*sandbox, exec).await;
        let ended = (outcome.ended, output.stderr_text());
        assert_eq!(ended, (ExecStatus::Exited(0), String::new()));
        let left = "ls -A /dev/shm /dev/mqueue; tail -q -n +2 /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem";
        assert_eq!(sh(&*sandbox, left).await, "/dev/mqueue:\n\n/dev/shm:\n");
    }
    // It needs most of the available memory.
    let large = r#"python3 -c "x = b'x' * (40 << 20); print(len(x))""#;
    assert_eq!(sh(&*sandbox, large).await, "41943040\n");
    env.finish().await;
}

#[tokio::test]
async fn shared_memory_stays_while_another_command_runs() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    let long =
        "echo mine > /dev/shm/mine; while ! [ -e stop ]; do sleep 0.02; done; cat /dev/shm/mine";
    let short = async {
        sh(
            &*sandbox,
            "while ! [ -s /dev/shm/mine ]; do sleep 0.01; done",
        )
        .await;
        sh(&*sandbox, "touch /dev/shm/other; touch stop").await
    };
    let (long, _) = tokio::join!(sh(&*sandbox, long), short);
    assert_eq!(long, "mine\n");
    assert_eq!(sh(&*sandbox, "ls /dev/shm").await, "");
    env.finish().await;
}

#[tokio::test]
async fn a_full_temporary_directory_is_an_error_and_not_a_death() {
    if skip_without_docker() {
        return;
    }
    let env = small_memory();
    let sandbox = env.sandbox().await;
    // By size, and by the number of empty files.
    let fill = "for d in /tmp /var/tmp; do head -c 1G /dev/zero > $d/x; done";
    let crowd = "import os
for number in range(1000000): os.close(os.open(f'/tmp/{number}', os.O_CREAT))";
    for exec in [
        Exec::shell(fill, TEST_TIMEOUT),
        Exec::argv(["python3", "-c", crowd], TEST_TIMEOUT),
    ] {
        let (outcome, output) = run(&*sandbox, exec).await;
        assert_eq!(outcome.ended, ExecStatus::Exited(1));
        let stderr = output.stderr_text();
        assert!(stderr.contains("No space left on device"), "{stderr}");
        // Later commands get the rest, with an error message.
        let large = r#"python3 -c "x = b'x' * (20 << 20); print(len(x))""#;
        assert_eq!(sh(&*sandbox, large).await, "20971520\n");
        let (outcome, output) = run(
            &*sandbox,
            Exec::shell("cp /etc/passwd /tmp/new", TEST_TIMEOUT),
        )
        .await;
        assert!(!outcome.ended.is_success(), "{outcome:?}");
        let stderr = output.stderr_text();
        assert!(stderr.contains("No space left on device"), "{stderr}");
        sh(&*sandbox, "find /tmp /var/tmp -mindepth 1 -delete").await;
    }
    env.finish().await;
}

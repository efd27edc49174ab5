//! Various ways to fill up the disk.

use std::time::Duration;

use ralph_core::ports::{Exec, ExecStatus, Sandbox};
use ralph_providers::sandbox::DockerLimits;
use ralph_test::skip_without_docker;

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, other_processes, run, sh};

fn small_disk() -> DockerTestEnv {
    DockerTestEnv::with_settings(|settings| {
        settings.limits = DockerLimits {
            disk: 50 << 20,
            ..DockerLimits::default()
        };
    })
}

/// Asserts that a command is killed in time because of the disk, with the reason; then frees space.
async fn assert_ended(sandbox: &dyn Sandbox, exec: Exec, why: &str) {
    let label = exec.label().to_owned();
    let (outcome, output) = run(sandbox, exec).await;
    let output_text = (output.stdout_text(), output.stderr_text());
    assert_eq!(
        outcome.ended,
        ExecStatus::DiskLimit,
        "{label}: {output_text:?}"
    );
    assert!(
        outcome.duration < Duration::from_secs(20),
        "{label}: {outcome:?}"
    );
    assert_eq!(output_text.0, "", "{label}");
    let line = output_text.1.lines().last().unwrap_or_default().to_owned();
    assert!(
        line.starts_with("ralph: the sandbox's disk is full: "),
        "{label}: {line}"
    );
    assert!(line.contains(why), "{label}: {line}");
    assert_eq!(outcome.stderr_bytes, output_text.1.len() as u64, "{label}");
    assert_eq!(other_processes(sandbox).await, "0", "{label}");
    // There is time to free space.
    sh(
        sandbox,
        "sleep 1.5; rm -rf ./* ../home/* /run/lock/* 2>/dev/null; true",
    )
    .await;
}

#[tokio::test]
async fn a_full_disk_ends_a_command() {
    if skip_without_docker() {
        return;
    }
    let env = small_disk();
    let sandbox = env.sandbox().await;
    // Written by a hidden process, and by many small files.
    for line in [
        "head -c 100M /dev/zero > file; (setsid sleep 60 &); sleep 60; echo not reached",
        "cd ../home; head -c 60M /dev/zero | split -b 100k; sleep 60",
    ] {
        assert_ended(
            &*sandbox,
            Exec::shell(line, TEST_TIMEOUT),
            "MiB, at most 50 MiB are allowed",
        )
        .await;
    }
    // A sparse file uses no space.
    sh(&*sandbox, "truncate -s 100G hole; sleep 1.5").await;
    env.finish().await;
}

#[tokio::test]
async fn files_without_a_name_count_until_they_are_closed() {
    if skip_without_docker() {
        return;
    }
    let env = small_disk();
    let sandbox = env.sandbox().await;
    let unlinked = "import os, sys, time
for number in range(10):
    file = open(f'file{number}', 'wb')
    os.unlink(f'file{number}')
    file.write(bytes(10 << 20)); file.flush()
    globals()[f'f{number}'] = file
time.sleep(60)";
    // Not accessible to other processes of the same user.
    let hidden = format!("import ctypes; ctypes.CDLL(None).prctl(4, 0)\n{unlinked}");
    for script in [unlinked, &hidden] {
        let exec = Exec::argv(["python3", "-c", script], TEST_TIMEOUT);
        assert_ended(&*sandbox, exec, "MiB, at most 50 MiB are allowed").await;
    }
    // Memory is not disk space, and closed files are freed.
    let other = "import os, time
file = os.memfd_create('x'); os.write(file, bytes(60 << 20))
for number in range(4):
    with open('file', 'wb') as file: file.write(bytes(30 << 20)); os.unlink('file')
    time.sleep(0.6)
print('done')";
    let (outcome, output) = run(
        &*sandbox,
        Exec::argv(["python3", "-c", other], TEST_TIMEOUT),
    )
    .await;
    assert_eq!(
        outcome.ended,
        ExecStatus::Exited(0),
        "{}",
        output.stderr_text()
    );
    env.finish().await;
}

#[tokio::test]
async fn files_below_very_long_paths_count() {
    if skip_without_docker() {
        return;
    }
    let env = small_disk();
    let sandbox = env.sandbox().await;
    let deep = "import os, time
for number in range(40):
    os.mkdir('d' * 200); os.chdir('d' * 200)
with open('file', 'wb') as file: file.write(bytes(100 << 20))
time.sleep(60)";
    let exec = Exec::argv(["python3", "-c", deep], TEST_TIMEOUT);
    assert_ended(&*sandbox, exec, "MiB, at most 50 MiB are allowed").await;
    env.finish().await;
}

#[tokio::test]
async fn files_without_content_count() {
    if skip_without_docker() {
        return;
    }
    let env = small_disk();
    let sandbox = env.sandbox().await;
    let crowd = "import os, time
for number in range(200000):
    if number % 1000 == 0: os.mkdir(f'd{number}')
    os.close(os.open(f'd{number - number % 1000}/{number}', os.O_CREAT))
time.sleep(60)";
    let exec = Exec::argv(["python3", "-c", crowd], TEST_TIMEOUT);
    assert_ended(&*sandbox, exec, "files, at most 12800 are allowed").await;
    env.finish().await;
}

#[tokio::test]
async fn a_writable_image_counts_as_well() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::with_settings(|settings| {
        settings.read_only = false;
        settings.limits = DockerLimits {
            disk: 50 << 20,
            ..DockerLimits::default()
        };
    });
    let sandbox = env.sandbox().await;
    // The image itself exceeds the limit and does not count.
    sh(&*sandbox, "sleep 2.5").await;
    let line = "head -c 30M /dev/zero > file; head -c 40M /dev/zero > /run/lock/file; sleep 60";
    assert_ended(
        &*sandbox,
        Exec::shell(line, TEST_TIMEOUT),
        "MiB, at most 50 MiB are allowed",
    )
    .await;
    env.finish().await;
}

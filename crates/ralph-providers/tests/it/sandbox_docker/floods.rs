//! Endless output, and output at the very end.

use std::fs;

use ralph_core::ports::{Exec, ExecStatus, OutputSink, OutputStream};
use ralph_test::skip_without_docker;

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, other_processes, run, sh};
use crate::sandbox_local::own_process::runs_in_own_process;

/// How much the memory of this process may grow, regardless of the output.
const MAX_GROWTH_KIB: u64 = 64 << 10;

/// Returns the resident memory of this process, in KiB.
fn resident_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.unwrap().trim_end_matches("kB").trim().parse().unwrap()
}

/// Counts output and samples the memory of this process.
#[derive(Default)]
struct FloodSink {
    stdout: u64,
    stderr: u64,
    chunks: u64,
    highest: u64,
}

impl OutputSink for FloodSink {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        match stream {
            OutputStream::Stdout => self.stdout += bytes.len() as u64,
            OutputStream::Stderr => self.stderr += bytes.len() as u64,
        }
        self.chunks += 1;
        if self.chunks.is_multiple_of(512) {
            self.highest = self.highest.max(resident_memory());
        }
    }
}

#[tokio::test]
async fn gibibytes_are_counted_and_not_kept() {
    let test = "sandbox_docker::floods::gibibytes_are_counted_and_not_kept";
    if skip_without_docker() || !runs_in_own_process(test) {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    sh(&*sandbox, "true").await;
    let before = resident_memory();
    for (line, limit, ended, stdout, stderr) in [
        (
            "head -c 1G /dev/zero; printf end >&2; exit 3",
            u64::MAX,
            ExecStatus::Exited(3),
            1 << 30,
            3,
        ),
        (
            "head -c 1G /dev/zero & head -c 1G /dev/zero >&2; wait",
            u64::MAX,
            ExecStatus::Exited(0),
            1 << 30,
            1 << 30,
        ),
    ] {
        let mut sink = FloodSink::default();
        let exec = Exec {
            output_limit: limit,
            ..Exec::shell(line, TEST_TIMEOUT)
        };
        let outcome = sandbox.exec(exec, None, &mut sink).await.unwrap();
        assert_eq!(outcome.ended, ended, "{line}");
        assert_eq!(
            (outcome.stdout_bytes, outcome.stderr_bytes),
            (stdout, stderr),
            "{line}"
        );
        assert_eq!((sink.stdout, sink.stderr), (stdout, stderr), "{line}");
        let growth = sink.highest.saturating_sub(before);
        assert!(
            growth <= MAX_GROWTH_KIB,
            "{growth} KiB more were needed for {line}"
        );
    }
    env.finish().await;
}

#[tokio::test]
async fn a_flood_is_cut_at_its_limit() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    // Also if closing the pipe cannot stop it, and if it is not the first process.
    for line in [
        "yes",
        "yes >&2",
        "trap '' PIPE TERM; (setsid yes &) ; (setsid yes >&2 &); sleep 60",
        "while :; do printf %099999d 0; done",
    ] {
        let mut sink = FloodSink::default();
        let exec = Exec {
            output_limit: 10 << 20,
            ..Exec::shell(line, TEST_TIMEOUT)
        };
        let outcome = sandbox.exec(exec, None, &mut sink).await.unwrap();
        assert_eq!(outcome.ended, ExecStatus::OutputLimit, "{line}");
        assert_eq!(sink.stdout + sink.stderr, 10 << 20, "{line}");
        assert_eq!(other_processes(&*sandbox).await, "0", "{line}");
    }
    // Output exactly at the limit is not truncated.
    let exec = Exec {
        output_limit: 1000,
        ..Exec::shell("printf %01000d 0", TEST_TIMEOUT)
    };
    assert_eq!(run(&*sandbox, exec).await.0.ended, ExecStatus::Exited(0));
    env.finish().await;
}

#[tokio::test]
async fn lines_have_no_length_limit() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    let length = 64 << 20;
    let line = format!("head -c {length} /dev/zero | tr '\\0' x; echo; echo next");
    let (outcome, output) = run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
    assert_eq!(outcome.ended, ExecStatus::Exited(0));
    assert_eq!(output.stdout.len(), length + 6);
    assert!(output.stdout[..length].iter().all(|byte| *byte == b'x'));
    assert_eq!(&output.stdout[length..], b"\nnext\n");
    env.finish().await;
}

#[tokio::test]
async fn the_last_bytes_are_never_lost() {
    if skip_without_docker() {
        return;
    }
    for (env, rounds) in [
        (DockerTestEnv::new(), 400),
        (DockerTestEnv::attached(), 100),
    ] {
        let sandbox = env.sandbox().await;
        for round in 0..rounds {
            let line = match round % 4 {
                0 => "printf out; printf err >&2; kill -9 $$",
                1 => "printf out; printf err >&2",
                // Killed by another process at the same moment.
                2 => "(printf out; printf err >&2; kill -9 $$)",
                _ => "exec 3>&1; (printf out >&3; printf err >&2; exec kill -9 $$) & wait",
            };
            let (_, output) = run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
            let streams = (output.stdout_text(), output.stderr_text());
            assert_eq!(
                streams,
                ("out".to_owned(), "err".to_owned()),
                "{round}: {line}"
            );
        }
        env.finish().await;
    }
}

#[tokio::test]
async fn output_is_not_waited_for_longer_than_its_command() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let sandbox = env.sandbox().await;
    // A grandchild has the output open and continues to write to it.
    let line = "(trap '' TERM HUP; while :; do echo more; sleep 0.1; done) & echo first";
    let (outcome, output) = run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
    assert_eq!(outcome.ended, ExecStatus::Exited(0));
    assert!(
        output.stdout_text().starts_with("first\n") || output.stdout_text().contains("\nfirst\n")
    );
    // Otherwise the grandchild would keep it open until the timeout.
    assert!(outcome.duration < TEST_TIMEOUT, "{outcome:?}");
    env.finish().await;
}

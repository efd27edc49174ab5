//! The resources of this process that commands use, and its data that they see.

use std::fs;

use ralph_core::ports::{Exec, ExecStatus, OutputSink, OutputStream};
use ralph_guest::available;

use super::fixture::{LocalTestEnv, TEST_TIMEOUT, run, sh};
use super::own_process::{CANARY, runs_in_own_process};

/// Returns the resident memory of this process, in KiB.
fn resident_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.unwrap().trim_end_matches("kB").trim().parse().unwrap()
}

/// Samples the memory of this process.
#[derive(Default)]
struct MemorySampler {
    chunks: u64,
    highest: u64,
}

impl OutputSink for MemorySampler {
    fn chunk(&mut self, _stream: OutputStream, _bytes: &[u8]) {
        self.chunks += 1;
        if self.chunks.is_multiple_of(512) {
            self.highest = self.highest.max(resident_memory());
        }
    }
}

#[tokio::test]
async fn a_gibibyte_of_output_is_not_kept() {
    if !runs_in_own_process("sandbox_local::resources::a_gibibyte_of_output_is_not_kept") {
        return;
    }
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    sh(&*sandbox, "true").await;
    let before = resident_memory();
    let mut sampler = MemorySampler::default();
    let exec = Exec::shell("head -c 1G /dev/zero", TEST_TIMEOUT * 5);
    let outcome = sandbox.exec(exec, None, &mut sampler).await.unwrap();
    assert_eq!(outcome.ended, ExecStatus::Exited(0));
    assert_eq!(outcome.stdout_bytes, 1 << 30);
    assert!(sampler.highest > 0, "the output came in too few pieces");
    let growth = sampler.highest.saturating_sub(before);
    assert!(growth <= 64 * 1024, "{growth} KiB more were needed");
}

/// Returns the numbers of open descriptors and children of this process.
fn open_files_and_children() -> (usize, usize) {
    let own = std::process::id().to_string();
    let children = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| available(fs::read_to_string(available(entry)?.path().join("stat"))))
        .filter(|stat| {
            let rest = stat.rsplit(')').next().unwrap();
            rest.split_whitespace().nth(1) == Some(&own)
        })
        .count();
    (fs::read_dir("/proc/self/fd").unwrap().count(), children)
}

#[tokio::test]
async fn many_commands_leave_nothing_behind() {
    if !runs_in_own_process("sandbox_local::resources::many_commands_leave_nothing_behind") {
        return;
    }
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    sh(&*sandbox, "true").await;
    let before = open_files_and_children();
    for number in 0..200 {
        let line = match number % 4 {
            0 => "true",
            1 => "(setsid true &); (true &)",
            2 => "sleep 60 >/dev/null 2>&1 & setsid sleep 60 >/dev/null 2>&1 & true",
            _ => "env -i sh -c '(setsid true &) & (true &)'",
        };
        sh(&*sandbox, line).await;
    }
    assert_eq!(open_files_and_children(), before);
}

#[tokio::test]
async fn the_last_bytes_are_never_lost() {
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    for round in 0..200 {
        let (outcome, output) =
            run(&*sandbox, Exec::shell("printf x; kill -9 $$", TEST_TIMEOUT)).await;
        assert_eq!(outcome.ended, ExecStatus::Signalled(9));
        assert_eq!(output.stdout_text(), "x", "in round {round}");
    }
}

#[tokio::test]
async fn a_variable_of_this_process_is_not_seen() {
    if !runs_in_own_process("sandbox_local::resources::a_variable_of_this_process_is_not_seen") {
        return;
    }
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    let line = "env; cat /proc/self/environ; cat /proc/$$/environ";
    let seen = sh(&*sandbox, line).await;
    assert!(seen.contains("RALPH_SANDBOX"), "{seen}");
    assert!(!seen.contains(CANARY), "{seen}");
}

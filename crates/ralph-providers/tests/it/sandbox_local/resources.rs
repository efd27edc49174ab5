//! What commands cost this process, and what they see of it.

use std::fs;

use ralph_core::ports::{Ended, Exec, OutputSink, Stream};

use super::alone::{CANARY, alone};
use super::place::{AMPLE, Place, run, sh};

/// Returns how much memory this process has, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.unwrap().trim_end_matches("kB").trim().parse().unwrap()
}

/// Looks at the memory of this process now and then.
#[derive(Default)]
struct Watch {
    chunks: u64,
    highest: u64,
}

impl OutputSink for Watch {
    fn chunk(&mut self, _stream: Stream, _bytes: &[u8]) {
        self.chunks += 1;
        if self.chunks.is_multiple_of(512) {
            self.highest = self.highest.max(resident());
        }
    }
}

#[tokio::test]
async fn a_gibibyte_of_output_is_not_kept() {
    if !alone("sandbox_local::resources::a_gibibyte_of_output_is_not_kept") {
        return;
    }
    let place = Place::new();
    let sandbox = place.sandbox().await;
    sh(&*sandbox, "true").await;
    let before = resident();
    let mut watch = Watch::default();
    let exec = Exec::shell("head -c 1G /dev/zero", AMPLE * 5);
    let outcome = sandbox.exec(exec, &mut watch).await.unwrap();
    assert_eq!(outcome.ended, Ended::Exited(0));
    assert_eq!(outcome.stdout_bytes, 1 << 30);
    assert!(watch.highest > 0, "the output came in too few pieces");
    let growth = watch.highest.saturating_sub(before);
    assert!(growth <= 64 * 1024, "{growth} KiB more were needed");
}

/// Returns how many descriptors this process has open, and how many children it has.
fn holdings() -> (usize, usize) {
    let own = std::process::id().to_string();
    let children = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            let rest = stat.rsplit(')').next().unwrap();
            rest.split_whitespace().nth(1) == Some(&own)
        })
        .count();
    (fs::read_dir("/proc/self/fd").unwrap().count(), children)
}

#[tokio::test]
async fn many_commands_leave_nothing_behind() {
    if !alone("sandbox_local::resources::many_commands_leave_nothing_behind") {
        return;
    }
    let place = Place::new();
    let sandbox = place.sandbox().await;
    sh(&*sandbox, "true").await;
    let before = holdings();
    for number in 0..200 {
        let line = match number % 4 {
            0 => "true",
            1 => "(setsid true &); (true &)",
            2 => "sleep 60 >/dev/null 2>&1 & setsid sleep 60 >/dev/null 2>&1 & true",
            _ => "env -i sh -c '(setsid true &) & (true &)'",
        };
        sh(&*sandbox, line).await;
    }
    assert_eq!(holdings(), before);
}

#[tokio::test]
async fn the_last_bytes_are_never_lost() {
    let place = Place::new();
    let sandbox = place.sandbox().await;
    for round in 0..200 {
        let (outcome, output) = run(&*sandbox, Exec::shell("printf x; kill -9 $$", AMPLE)).await;
        assert_eq!(outcome.ended, Ended::Signalled(9));
        assert_eq!(output.stdout_text(), "x", "in round {round}");
    }
}

#[tokio::test]
async fn a_variable_of_this_process_is_not_seen() {
    if !alone("sandbox_local::resources::a_variable_of_this_process_is_not_seen") {
        return;
    }
    let place = Place::new();
    let sandbox = place.sandbox().await;
    let line = "env; cat /proc/self/environ; cat /proc/$$/environ";
    let seen = sh(&*sandbox, line).await;
    assert!(seen.contains("RALPH_SANDBOX"), "{seen}");
    assert!(!seen.contains(CANARY), "{seen}");
}

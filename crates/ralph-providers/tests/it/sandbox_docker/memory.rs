//! Memory that runs out, in the middle of something.

use std::time::Duration;

use ralph_core::ports::{Ended, Exec};
use ralph_providers::sandbox::Limits;
use ralph_test::left_out_without_docker;

use super::place::{AMPLE, Place, others, run, sh};

fn small() -> Place {
    Place::with(|settings| {
        settings.limits = Limits {
            memory: Some(64 << 20),
            ..Limits::default()
        };
    })
}

const HUNGRY: &str = r#"python3 -c "x = b'x' * (200 << 20); print(len(x))""#;

#[tokio::test]
async fn memory_that_ran_out_is_never_green() {
    if left_out_without_docker() {
        return;
    }
    let place = small();
    let sandbox = place.sandbox().await;
    for line in [
        HUNGRY.to_owned(),
        // The exit code is that of the last one, and says nothing.
        format!("{HUNGRY} | cat"),
        format!("{HUNGRY}; true"),
        format!("({HUNGRY}) >/dev/null 2>&1 & wait; exit 0"),
        format!("echo before; {HUNGRY} || echo after; setsid {HUNGRY} & wait"),
    ] {
        let (outcome, _) = run(&*sandbox, Exec::shell(&line, AMPLE)).await;
        assert_eq!(outcome.ended, Ended::OutOfMemory, "{line}");
        assert!(outcome.duration < Duration::from_secs(20), "{outcome:?}");
        assert_eq!(sh(&*sandbox, "echo usable").await, "usable\n");
    }
    // What is kept by others does not count for the next one.
    let (outcome, _) = run(&*sandbox, Exec::shell("exit 7", AMPLE)).await;
    assert_eq!(outcome.ended, Ended::Exited(7));
    assert_eq!(others(&*sandbox).await, "0");
    place.end().await;
}

#[tokio::test]
async fn a_command_that_spares_itself_is_ended_before_the_guest() {
    if left_out_without_docker() {
        return;
    }
    let place = small();
    let sandbox = place.sandbox().await;
    // Many small ones, each of which would rather have any other killed.
    let line = r#"echo 0 > /proc/self/oom_score_adj; echo -1000 > /proc/self/oom_score_adj 2>/dev/null
        for i in 1 2 3 4 5 6 7 8 9 10; do
            python3 -c "
import time
kept = []
while True: kept.append(bytearray(1 << 20)); time.sleep(0.01)" &
        done; wait"#;
    let (outcome, _) = run(&*sandbox, Exec::shell(line, Duration::from_secs(3))).await;
    // Its outcome is known: the guest was there all the time.
    let known = [Ended::OutOfMemory, Ended::TimedOut].contains(&outcome.ended);
    assert!(known, "{outcome:?}");
    assert_eq!(sh(&*sandbox, "echo usable").await, "usable\n");
    place.end().await;
}

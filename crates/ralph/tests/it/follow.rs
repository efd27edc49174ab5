//! Following a live run.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use ralph_app::follow::{FollowEnd, JournalFollower, follow};
use ralph_core::run::{PauseReason, RunStatus};

use crate::support::{RalphOutput, TestRalph, status, working};

const ONE: &str = "260301-100000-0001";

#[test]
fn logs_follow_until_the_run_is_idle() {
    let ralph = TestRalph::new();
    let mut journal = ralph.held_run(ONE, "one", working());
    let log = ralph.dir(ONE).file("activity.log");
    let append = |text: &str| {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    append("first\n");
    let child = ralph
        .command(&["logs", "one", "-f"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(250));
    append("sec");
    std::thread::sleep(Duration::from_millis(250));
    append("ond\nlast words");
    journal.append(status(RunStatus::Stopped)).unwrap();
    drop(journal);
    let output = RalphOutput::from(child.wait_with_output().unwrap());
    assert_eq!(
        output,
        RalphOutput {
            code: 0,
            stdout: "first\nsecond\nlast words".into(),
            stderr: String::new(),
        }
    );
}

#[test]
fn a_run_is_followed_to_its_end_or_until_it_is_left() {
    for (last, ending) in [
        (RunStatus::Stopped, FollowEnd::Finished),
        (
            RunStatus::Paused(PauseReason::Person),
            FollowEnd::Unattended,
        ),
    ] {
        let ralph = TestRalph::new();
        let mut journal = ralph.held_run(ONE, "one", working());
        let dir = ralph.dir(ONE);
        let last_status = last.clone();
        let process = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(250));
            journal.append(status(last)).unwrap();
        });
        let mut numbers = Vec::new();
        let mut reader = JournalFollower::new(&dir);
        let ended = follow(&dir, &mut reader, &mut |record, state| {
            assert_eq!(record.seq, state.seq);
            numbers.push(record.seq);
        });
        process.join().unwrap();
        assert_eq!(ended.unwrap(), ending);
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(reader.state().unwrap().status, last_status);
    }
}

//! Disk states that only a crash can leave.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::resume_checks::{assert_same_result, find, kill_after};
use crate::crash_stage::{BRANCH, CrashStage};
use crate::strace::{KillPoint, ReferenceTrace};

/// A write that was performed but not recorded happens once, however often its record is lost.
#[test]
fn a_write_is_done_once() {
    let stage = CrashStage::new();
    kill_after(&stage, find("action_started", "action", "write", 3));
    // Performs the write that the kill prevented.
    let names = stage.sandbox().join("repo/names.txt");
    fs::write(&names, "Ann\nBob\n").unwrap();
    let started = |stage: &CrashStage| {
        let events = stage.events();
        events.last().unwrap()["type"] == "action_started"
    };
    // The sync of the opened journal, then opening, running, and the intent again.
    assert_eq!(
        KillPoint::new("fdatasync", 4).kill(&stage.resume()).code(),
        None
    );
    assert!(started(&stage));
    assert_same_result(&stage, "a write that was done before two crashes");
}

/// The moment between the last two steps of an iteration.
#[test]
fn an_iteration_with_its_final_name_and_no_record_of_it() {
    let stage = CrashStage::new();
    let point = ReferenceTrace::get().after_call("/iterations/2.open");
    assert_eq!(point.kill(&stage.start()).code(), None, "{point:?}");
    let dir = stage.dir();
    assert!(dir.iteration(2).exists() && !dir.open_iteration(2).exists());
    assert_eq!(dir.state().unwrap().open.unwrap().number, 2);
    assert_same_result(&stage, "iteration 2");
}

/// The moment between importing objects and moving the branch.
#[test]
fn commits_whose_objects_are_there_already() {
    let stage = CrashStage::new();
    let point = ReferenceTrace::get().after_call("/incoming/pack/");
    assert_eq!(point.kill(&stage.start()).code(), None, "{point:?}");
    assert_eq!(stage.events().last().unwrap()["type"], "boxes_ticked");
    assert_same_result(&stage, "objects");
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn torn_lines_are_put_aside() {
    let stage = CrashStage::new();
    kill_after(&stage, find("commits_imported", "", "", 1));
    let dir = stage.dir();
    let torn = [
        (dir.journal(), r#"{"v":1,"seq":4"#),
        (dir.file("activity.log"), "2026-11-15T21"),
        (
            dir.file("errors.log"),
            "2026-11-15T21:50:01Z iteration=2 \u{23ce} to",
        ),
    ];
    for (path, piece) in &torn {
        append(path, piece);
    }
    let output = stage.run(&["audit", "last"]);
    assert_eq!(output.code, 0, "{}", output.stdout);
    for torn in [
        "note: journal.jsonl ends in the middle of record",
        "note: files/activity.log line",
        "note: files/errors.log line",
    ] {
        assert!(output.stdout.contains(torn), "{torn}: {}", output.stdout);
    }
    let output = stage.run(&["resume", "last"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_same_result(&stage, "torn lines");
    let entries = fs::read_dir(dir.recovered()).unwrap();
    let mut kept: Vec<String> = entries
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    kept.sort();
    let mut expected = torn.map(|(_, piece)| piece.to_owned());
    expected.sort();
    assert_eq!(kept, expected);
}

/// When the machine goes down, git dies too.
#[test]
fn with_the_git_of_the_host() {
    let stage = CrashStage::new();
    kill_after(&stage, find("action_started", "action", "commit", 1));
    let repo = stage.dir().repo();
    for lock in [
        format!("refs/heads/{BRANCH}"),
        "snapshot.index".into(),
        "out.bundle".into(),
    ] {
        fs::write(repo.join(format!("{lock}.lock")), "").unwrap();
    }
    assert_same_result(&stage, "locks");
}

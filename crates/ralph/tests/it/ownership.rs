//! A run has one owner: whatever happens to its files, two processes never write to one journal.

use std::fs;
use std::path::Path;
use std::process::Command;

use ralph_guest::available;
use rustix::process::Signal;

use crate::project::{Project, actions, finish, run};

/// Waits for the file `go` in the repository.
const WAIT: &str = "until [ -e go ]; do sleep 0.1; done";

fn waiting() -> Project {
    Project::new().script(&[actions(&[run(WAIT)]), finish()])
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

/// Returns the processes of the project's sandboxes.
fn processes(project: &Project) -> Vec<String> {
    let home = project.home().join("sandboxes").display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            fs::read(entry.path().join("environ"))
                .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&home))
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn removing_the_lock_file_gives_the_run_to_no_other_process() {
    let project = waiting();
    let live = project.start();
    live.wait_for_event("action_started", 1);
    fs::remove_file(project.run_dir().join("lock")).unwrap();
    let number = live.pid().as_raw_pid();
    let refused = project.ralph(&["resume", "last"]).expect(1);
    let why = format!("it is not paused; process {number} works on it");
    assert!(refused.stderr.contains(&why), "{}", refused.stderr);
    let refused = project.run().expect(1);
    assert!(refused.stderr.contains("under way"), "{}", refused.stderr);
    assert_eq!(project.show()["status"], "running");
    // The second attempt recreated the file; it is not locked, and ownership is still not granted.
    let refused = project.ralph(&["resume", "last"]).expect(1);
    assert!(refused.stderr.contains(&why), "{}", refused.stderr);
    fs::write(project.sandbox().join("go"), "").unwrap();
    live.wait().expect(0);
    project.audit();
}

#[test]
fn a_process_whose_run_was_restored_from_a_copy_and_taken_over_parks() {
    let project = waiting();
    let first = project.start();
    first.wait_for_event("action_started", 1);
    let (dir, old) = (project.run_dir(), project.path("old"));
    first.signal(Signal::STOP);
    let restored = project.path("restored");
    copy(&dir, &restored);
    fs::rename(&dir, &old).unwrap();
    fs::rename(&restored, &dir).unwrap();
    let before = fs::read(old.join("journal.jsonl")).unwrap();
    fs::write(project.sandbox().join("go"), "").unwrap();
    let second = project.resume();
    let number = second.pid().as_raw_pid();
    second.wait().expect(0);
    let journal = fs::read(dir.join("journal.jsonl")).unwrap();
    let files = fs::read(dir.join("files/activity.log")).unwrap();
    first.signal(Signal::CONT);
    let parked = first.wait().expect(11);
    let id = dir.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(
        parked.stderr,
        format!(
            "ralph: run `{id}` was taken over by pid {number} — its journal was replaced, removed or \
             changed; this process writes nothing more — check its status with `ralph show {id}`\n"
        )
    );
    assert_eq!(fs::read(dir.join("journal.jsonl")).unwrap(), journal);
    assert_eq!(fs::read(dir.join("files/activity.log")).unwrap(), files);
    assert_eq!(fs::read(old.join("journal.jsonl")).unwrap(), before);
    assert_eq!(project.show()["status"], "succeeded");
    project.audit();
}

#[test]
fn a_process_whose_journal_was_changed_in_place_parks() {
    for change in ["restored", "cut", "written", "removed"] {
        let project = waiting();
        let live = project.start();
        live.wait_for_event("action_started", 1);
        let dir = project.run_dir();
        let path = dir.join("journal.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let after = match change {
            // The same length, different bytes.
            "restored" => {
                let last = text.len() - 40;
                [&text[..last], &"x".repeat(39), "\n"].concat()
            }
            "cut" => lines[..lines.len() - 1].concat(),
            _ => format!("{text}a line of another process\n"),
        };
        if change == "removed" {
            fs::remove_file(&path).unwrap();
        } else {
            fs::write(&path, &after).unwrap();
        }
        let parked = live.wait().expect(11);
        let id = dir.file_name().unwrap().to_string_lossy().into_owned();
        let says = format!("ralph: run `{id}` no longer belongs to this process — ");
        assert!(
            parked.stderr.starts_with(&says),
            "{change}: {}",
            parked.stderr
        );
        assert_eq!(
            parked.stderr.lines().count(),
            1,
            "{change}: {}",
            parked.stderr
        );
        assert!(
            processes(&project).is_empty(),
            "{change}: its command has ended"
        );
        let now = available(fs::read_to_string(&path));
        assert_eq!(now, (change != "removed").then_some(after), "{change}");
    }
}

#[test]
fn of_many_processes_that_resume_a_run_at_once_one_works_on_it() {
    let project = waiting();
    let live = project.start();
    live.wait_for_event("action_started", 1);
    live.signal(Signal::KILL);
    live.wait().expect(-1);
    fs::write(project.sandbox().join("go"), "").unwrap();
    let resumed: Vec<_> = (0..8).map(|_| project.resume()).collect();
    for live in resumed {
        // Late commands are rejected, or answered by the owner.
        let ended = live.wait();
        assert!([0, 1].contains(&ended.code), "{}", ended.combined());
    }
    assert_eq!(project.show()["status"], "succeeded");
    let opened = project.event_values("run_opened", "epoch");
    assert_eq!(
        opened,
        [1, 2],
        "one process after the first has had the run"
    );
    project.audit();
}

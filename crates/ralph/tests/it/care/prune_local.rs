//! Stale sandboxes on this machine.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use ralph_core::event::{Event, SandboxEvent, SandboxPurpose};
use ralph_core::ports::{SandboxId, SandboxProvider as _, SandboxSpec};
use ralph_core::run::RunStatus;
use ralph_engine::journal::Journal;
use ralph_providers::sandbox::LocalProvider;
use serde_json::{Value, json};

use crate::project::Project;
use crate::support::{TestRalph, status, working};

/// Creates a local sandbox in a state directory, labeled with a run.
fn sandbox(sandboxes: std::path::PathBuf, run: Option<&str>) -> SandboxId {
    labeled(sandboxes, run.map(|run| ("run", run)).as_slice())
}

fn labeled(sandboxes: std::path::PathBuf, labels: &[(&str, &str)]) -> SandboxId {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let spec = SandboxSpec {
        labels: labels.iter().map(owned).collect(),
        ..SandboxSpec::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let provider = LocalProvider::new(sandboxes, "/usr/bin:/bin");
    let sandbox = runtime.block_on(provider.create(&spec)).unwrap();
    sandbox.id().clone()
}

fn entry(id: &SandboxId, run: Option<&str>, why: &str) -> Value {
    json!({"provider": "local", "id": id.0, "run": run, "why": why})
}

fn sorted(list: &Value) -> Vec<Value> {
    let mut list = list.as_array().unwrap().clone();
    list.sort_by_key(|entry| entry["id"].to_string());
    list
}

fn all<const N: usize>(mut entries: [Value; N]) -> Vec<Value> {
    entries.sort_by_key(|entry| entry["id"].to_string());
    entries.into()
}

const ENDED: &str = "260301-100000-0001";
const WAITING: &str = "260301-100000-0002";
const HELD: &str = "260301-100000-0003";
const GONE: &str = "260301-100000-0004";
const ORPHANED: &str =
    "the directory of its run is gone, and it may contain the last copy of the work";
const DAMAGED: &str = "260301-100000-0005";

/// Creates the runs of the sandboxes. The waiting one uses the sandbox `work`.
fn make_runs(ralph: &TestRalph, work: &SandboxId) -> Journal {
    let mut stopped = working();
    stopped.push(status(RunStatus::Stopped));
    ralph.create_run(ENDED, "ended", stopped);
    let mut interrupted = working();
    interrupted.push(Event::Sandbox(SandboxEvent::SandboxCreated {
        sandbox: work.clone(),
        purpose: SandboxPurpose::Work,
    }));
    ralph.create_run(WAITING, "waiting", interrupted);
    ralph.create_run(DAMAGED, "damaged", working());
    fs::write(ralph.dir(DAMAGED).journal(), "nonsense\n").unwrap();
    ralph.held_run(HELD, "held", working())
}

/// Backdates a sandbox by two hours.
fn age(ralph: &TestRalph, id: &SandboxId) {
    let record = ralph.state().sandboxes().join(format!("{id}.json"));
    let file = File::options().write(true).open(record).unwrap();
    let before = SystemTime::now() - Duration::from_hours(2);
    file.set_modified(before).unwrap();
}

#[test]
fn stale_sandboxes_are_reported_and_then_removed() {
    let ralph = TestRalph::new();
    let make = |run: Option<&str>| sandbox(ralph.state().sandboxes(), run);
    let [of_ended, of_waiting, unused, of_held, of_gone, of_damaged] =
        [ENDED, WAITING, WAITING, HELD, GONE, DAMAGED].map(|run| make(Some(run)));
    let room_labels = [("run", GONE), ("purpose", "clean_room")];
    let clean_room = labeled(ralph.state().sandboxes(), &room_labels);
    let (young, old) = (make(None), make(None));
    age(&ralph, &old);
    let _journal = make_runs(&ralph, &of_waiting);

    let removed = all([
        entry(&of_ended, Some(ENDED), "its run has ended"),
        entry(&unused, Some(WAITING), "its run continues without it"),
        entry(&clean_room, Some(GONE), "its run no longer exists"),
        entry(&old, None, "it belongs to no run, and no process uses it"),
    ]);
    let unreadable = "the journal of its run cannot be read";
    let kept = all([
        entry(&of_waiting, Some(WAITING), "its run can be resumed"),
        entry(&of_held, Some(HELD), "a process works on its run"),
        entry(&of_damaged, Some(DAMAGED), unreadable),
        entry(&young, None, "the process that created it may still use it"),
    ]);
    let orphan = entry(&of_gone, Some(GONE), ORPHANED);
    let prune = |more: &[&str]| {
        let args = [&["prune-sandboxes", "--type", "local", "--json"], more].concat();
        ralph.json(&args)
    };
    for arguments in [&["--dry-run"][..], &[]] {
        let report = prune(arguments);
        assert_eq!(sorted(&report["removed"]), removed, "{arguments:?}");
        assert_eq!(sorted(&report["kept"]), kept, "{arguments:?}");
        assert_eq!(report["orphaned"], json!([orphan]), "{arguments:?}");
    }
    let report = prune(&[]);
    assert_eq!(report["removed"], json!([]));
    assert_eq!(sorted(&report["kept"]), kept);
    let report = prune(&["--max-age", "2d"]);
    let why = "its run has not been resumed for too long";
    let waiting = entry(&of_waiting, Some(WAITING), why);
    assert_eq!(report["removed"], json!([waiting]));
    assert_eq!(report["orphaned"], json!([orphan]));
    let report = prune(&["--orphaned"]);
    let gone = entry(&of_gone, Some(GONE), "its run no longer exists");
    assert_eq!(report["removed"], json!([gone]));
    assert_eq!(report["orphaned"], json!([]));
}

/// Remains of a process killed while creating a sandbox: an unfinished record, and with earlier
/// versions a directory without a record.
#[test]
fn sandboxes_that_were_never_finished_are_removed() {
    let ralph = TestRalph::new();
    let sandboxes = ralph.state().sandboxes();
    fs::create_dir_all(sandboxes.join("local-000000000001/repo")).unwrap();
    fs::write(sandboxes.join(".local-000000000002.json"), "").unwrap();
    // No process has this pid.
    fs::write(sandboxes.join(".local-000000000003.2147483647.new"), "{").unwrap();
    let prune = || ralph.json(&["prune-sandboxes", "--type", "local", "--json"]);
    let young = prune();
    let why = "the process that created it may still use it";
    let ids = ["local-000000000001", "local-000000000002"].map(|id| SandboxId(id.into()));
    let kept = all(ids.each_ref().map(|id| entry(id, None, why)));
    assert_eq!(sorted(&young["kept"]), kept);

    let before = SystemTime::now() - Duration::from_mins(2);
    for name in ["local-000000000001", ".local-000000000002.json"] {
        let file = File::open(sandboxes.join(name)).unwrap();
        file.set_modified(before).unwrap();
    }
    let why = "the process that created it was killed before it was ready";
    let removed = all(ids.each_ref().map(|id| entry(id, None, why)));
    assert_eq!(sorted(&prune()["removed"]), removed);
    assert_eq!(fs::read_dir(&sandboxes).unwrap().count(), 0);
}

#[test]
fn without_an_engine_local_sandboxes_are_still_checked() {
    let ralph = TestRalph::new();
    sandbox(ralph.state().sandboxes(), Some(GONE));
    let nowhere = "unix:///nonexistent/docker.sock";
    let prune = |args: &[&str]| {
        let args = [&["prune-sandboxes"], args].concat();
        let output = ralph.command(&args).env("DOCKER_HOST", nowhere).output();
        crate::support::RalphOutput::from(output.unwrap())
    };
    let output = prune(&[]);
    assert_eq!(output.code, 0, "{output:?}");
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    let orphan = format!(" of run 260301-100000-0004 — {ORPHANED}");
    assert!(lines[0].starts_with("orphaned local-"), "{output:?}");
    assert!(lines[0].ends_with(&orphan), "{output:?}");
    let note = "note: docker is skipped — no Docker Engine is running here: socket `/nonexistent/docker.sock` does not exist — ";
    assert!(output.stderr.starts_with(note), "{output:?}");

    let output = prune(&["--type", "docker"]);
    let error = "ralph: cannot search for stale sandboxes — no Docker Engine is running here: ";
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert!(output.stderr.starts_with(error), "{output:?}");
}

/// Unusable sandboxes are removed before a run starts; those the user may want to inspect, and
/// those with work of a lost run, remain.
#[test]
fn a_run_tidies_up_before_it_starts() {
    let project = Project::new();
    let orphan = sandbox(project.home().join("sandboxes"), Some(GONE));
    let room_labels = [("run", GONE), ("purpose", "clean_room")];
    let room = labeled(project.home().join("sandboxes"), &room_labels);
    // It gives up, and its sandbox remains for inspection.
    let gives_up = json!({"reply": {"summary": "No", "actions": [
        {"type": "stop_failure", "reason": "no"}], "claims": {}}});
    project.write_script(&[gives_up]);
    project.run().expect(10);
    let messages = project.event_values("notice", "message");
    let expected = format!("removed the sandbox `{room}`: its run no longer exists");
    assert_eq!(messages, [json!(expected)]);
    let kept = project.event_values("sandbox_created", "sandbox");
    let there = |id: &Value| {
        let name = id.as_str().unwrap();
        project.home().join("sandboxes").join(name).exists()
    };
    assert!(kept.iter().all(there), "{kept:?}");
    assert!(!there(&json!(room.0)));
    assert!(there(&json!(orphan.0)), "the last copy of work was removed");

    project.run().expect(10);
    assert!(project.event_values("notice", "message").is_empty());
    assert!(there(&json!(orphan.0)), "the last copy of work was removed");
    assert!(
        kept.iter().all(there),
        "a sandbox that retention keeps was removed"
    );
}

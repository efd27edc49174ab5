//! Stale sandboxes of this machine.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use ralph_core::event::{Event, Purpose};
use ralph_core::ports::{SandboxId, SandboxProvider as _, SandboxSpec};
use ralph_core::run::RunStatus;
use ralph_providers::sandbox::LocalProvider;
use serde_json::{Value, json};

use crate::project::Project;
use crate::support::{Ralph, status, working};

/// Makes a local sandbox in a state directory, marked with a run.
fn sandbox(sandboxes: std::path::PathBuf, run: Option<&str>) -> SandboxId {
    let spec = SandboxSpec {
        labels: run
            .map(|run| ("run".to_owned(), run.to_owned()))
            .into_iter()
            .collect(),
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

#[test]
fn stale_sandboxes_are_told_and_then_removed() {
    let ralph = Ralph::new();
    let (ended, waiting, held) = (
        "260301-100000-0001",
        "260301-100000-0002",
        "260301-100000-0003",
    );
    let (gone, damaged) = ("260301-100000-0004", "260301-100000-0005");
    let make = |run: Option<&str>| sandbox(ralph.state().sandboxes(), run);
    let [of_ended, of_waiting, unused, of_held, of_gone, of_damaged] =
        [ended, waiting, waiting, held, gone, damaged].map(|run| make(Some(run)));
    let (young, old) = (make(None), make(None));
    let record = ralph.state().sandboxes().join(format!("{old}.json"));
    let before = SystemTime::now() - Duration::from_hours(2);
    File::options()
        .write(true)
        .open(record)
        .unwrap()
        .set_modified(before)
        .unwrap();

    let mut stopped = working();
    stopped.push(status(RunStatus::Stopped));
    ralph.make_run(ended, "ended", stopped);
    let mut interrupted = working();
    interrupted.push(Event::SandboxCreated {
        sandbox: of_waiting.clone(),
        purpose: Purpose::Work,
    });
    ralph.make_run(waiting, "waiting", interrupted);
    let _journal = ralph.held_run(held, "held", working());
    ralph.make_run(damaged, "damaged", working());
    fs::write(ralph.dir(damaged).journal(), "nonsense\n").unwrap();

    let removed = all([
        entry(&of_ended, Some(ended), "its run has ended"),
        entry(&unused, Some(waiting), "its run goes on without it"),
        entry(&of_gone, Some(gone), "its run no longer exists"),
        entry(&old, None, "it belongs to no run, and nobody uses it"),
    ]);
    let kept = all([
        entry(&of_waiting, Some(waiting), "its run can be resumed"),
        entry(&of_held, Some(held), "a process works on its run"),
        entry(
            &of_damaged,
            Some(damaged),
            "the journal of its run cannot be read",
        ),
        entry(&young, None, "the process that made it may still use it"),
    ]);
    let prune = |more: &[&str]| {
        let args = [&["prune-sandboxes", "--type", "local", "--json"], more].concat();
        ralph.json(&args)
    };
    for arguments in [&["--dry-run"][..], &[]] {
        let report = prune(arguments);
        assert_eq!(sorted(&report["removed"]), removed, "{arguments:?}");
        assert_eq!(sorted(&report["kept"]), kept, "{arguments:?}");
    }
    let report = prune(&[]);
    assert_eq!(report["removed"], json!([]));
    assert_eq!(sorted(&report["kept"]), kept);
    let old = prune(&["--max-age", "2d"]);
    let why = "its run was not resumed for too long";
    assert_eq!(
        old["removed"],
        json!([entry(&of_waiting, Some(waiting), why)])
    );
}

#[test]
fn without_an_engine_the_local_ones_are_still_looked_at() {
    let ralph = Ralph::new();
    sandbox(ralph.state().sandboxes(), Some("260301-100000-0004"));
    let nowhere = "unix:///nonexistent/docker.sock";
    let prune = |args: &[&str]| {
        let args = [&["prune-sandboxes"], args].concat();
        let output = ralph.command(&args).env("DOCKER_HOST", nowhere).output();
        crate::support::Seen::from(output.unwrap())
    };
    let seen = prune(&[]);
    assert_eq!(seen.code, 0, "{seen:?}");
    let lines: Vec<&str> = seen.stdout.lines().collect();
    assert_eq!(lines.len(), 1, "{seen:?}");
    assert!(lines[0].ends_with(" of run 260301-100000-0004 — its run no longer exists"));
    let note = "note: docker is left out — no Docker Engine runs here: there is no socket `/nonexistent/docker.sock` — ";
    assert!(seen.stderr.starts_with(note), "{seen:?}");

    let asked = prune(&["--type", "docker"]);
    let error = "ralph: cannot look for stale sandboxes — no Docker Engine runs here: ";
    assert_eq!((asked.code, asked.stdout.as_str()), (1, ""));
    assert!(asked.stderr.starts_with(error), "{asked:?}");
}

/// What nobody can use any more goes before a run starts; what somebody may want to look at stays.
#[test]
fn a_run_tidies_up_before_it_starts() {
    let project = Project::new();
    let gone = "260301-100000-0004";
    let orphan = sandbox(project.home().join("sandboxes"), Some(gone));
    // It gives up, and its sandbox is kept for a look.
    let gives_up = json!({"reply": {"summary": "No", "actions": [
        {"type": "stop_failure", "reason": "no"}], "claims": {}}});
    project.write_script(&[gives_up]);
    project.run().expect(10);
    let told = project.told("notice", "message");
    let expected = format!("removed the sandbox `{orphan}`: its run no longer exists");
    assert_eq!(told, [json!(expected)]);
    let kept = project.told("sandbox_created", "sandbox");
    let there = |id: &Value| {
        let name = id.as_str().unwrap();
        project.home().join("sandboxes").join(name).exists()
    };
    assert!(kept.iter().all(there), "{kept:?}");
    assert!(!there(&json!(orphan.0)));

    project.run().expect(10);
    assert!(project.told("notice", "message").is_empty());
    assert!(kept.iter().all(there), "a sandbox kept for a look is gone");
}

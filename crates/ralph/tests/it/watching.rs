//! Runs in the background, the list of unfinished runs, and names of runs.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getsid};
use serde_json::Value;

use crate::project::{Project, actions, claiming, control, finish, run, work};

/// Longer than anything takes on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// Waits until the run has a status.
#[track_caller]
fn wait_for_status(project: &Project, status: &str) {
    let start = Instant::now();
    while project.show()["status"] != status {
        assert!(start.elapsed() < WAIT_TIMEOUT, "{}", project.show());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_detached_run_works_in_its_own_session_and_can_be_stopped() {
    let project = Project::new().script(&[actions(&[run("sleep 600")]), finish()]);
    let started = project.run_with(&["--detach"]).expect(0);
    let id = project.show()["id"].as_str().unwrap().to_owned();
    assert!(
        started
            .stdout
            .starts_with(&format!("run {id}: started in the background by process ")),
        "{}",
        started.stdout
    );
    for command in ["ralph attach", "ralph logs -f"] {
        let line = format!("{command} {id}");
        assert!(started.stdout.contains(&line), "{}", started.stdout);
    }
    wait_for_status(&project, "running");
    let pid = project.event_values("run_opened", "pid")[0].as_i64();
    let pid = i32::try_from(pid.unwrap()).unwrap();
    let process = Pid::from_raw(pid).unwrap();
    assert_eq!(getsid(Some(process)).unwrap(), process);
    assert!(project.run_dir().join("detached.log").exists());
    project.ralph(&["stop"]).expect(0);
    wait_for_status(&project, "stopped");
}

#[test]
fn a_detached_run_goes_on_alone_until_it_succeeds() {
    let project = Project::new().script(&[finish()]);
    let started = project.run_with(&["--detach", "--json"]).expect(0);
    let report: Value = serde_json::from_str(&started.stdout).unwrap();
    assert!(report["pid"].is_u64(), "{report}");
    wait_for_status(&project, "succeeded");
    assert_eq!(project.show()["id"], report["run"]);
    assert_eq!(
        fs::read_to_string(project.run_dir().join("detached.log")).unwrap(),
        ""
    );
    project.audit();
}

#[test]
fn an_error_before_the_start_is_reported_with_its_exit_code() {
    let project = Project::new().script(&[finish()]);
    for (flags, code) in [
        (&["--model", "scripted:/nowhere.jsonl"][..], 2),
        (
            &["--repo", "/nowhere", "--model", "scripted:/nowhere.jsonl"],
            2,
        ),
    ] {
        let alone = project.ralph(&[&["run"], flags].concat());
        let detached = project.ralph(&[&["run", "--detach"], flags].concat());
        assert_eq!(
            (detached.code, alone.code),
            (code, code),
            "{}",
            alone.stderr
        );
        assert_eq!(detached.stderr, alone.stderr);
    }
    let project = project.without("test_command");
    project.run_with(&["--detach"]).expect(12);
    let both = project.run_with(&["--detach", "--dry-run"]).expect(2);
    assert!(
        both.stderr.contains("cannot be used with"),
        "{}",
        both.stderr
    );
    assert!(!project.home().join("runs").exists() || project.ralph(&["show"]).code == 1);
}

#[test]
fn a_detached_resume_continues_the_run_and_reports_errors() {
    let project = Project::new().script(&[actions(&[control("pause", "which port?")]), finish()]);
    project.run().expect(11);
    let resumed = project.ralph(&["resume", "--detach"]).expect(0);
    assert!(
        resumed.stdout.contains("started in the background"),
        "{}",
        resumed.stdout
    );
    wait_for_status(&project, "succeeded");
    let ended = project.ralph(&["resume", "--detach"]).expect(1);
    assert!(
        ended.stderr.contains("it has succeeded"),
        "{}",
        ended.stderr
    );
    project.audit();
}

#[test]
fn top_lists_the_unfinished_runs_of_all_repositories() {
    let project = Project::new().script(&[actions(&[run("sleep 600")]), finish()]);
    let other = Project::new()
        .env("RALPH_HOME", project.home().display().to_string())
        .script(&[actions(&[control("pause", "which port?")])]);
    let nothing = project.ralph(&["top"]).expect(0);
    assert!(
        nothing.stdout.starts_with("no unfinished runs"),
        "{}",
        nothing.stdout
    );
    other.run().expect(11);
    let live = project.start();
    let start = Instant::now();
    let listed = loop {
        let listed = project.ralph(&["top"]).expect(0);
        if listed.stdout.contains("s · run sleep 600") {
            break listed;
        }
        assert!(start.elapsed() < WAIT_TIMEOUT, "{}", listed.stdout);
        std::thread::sleep(Duration::from_millis(50));
    };
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", listed.stdout);
    assert!(lines[1].contains("running"), "{}", lines[1]);
    assert!(lines[1].contains("s · run sleep 600"), "{}", lines[1]);
    assert!(
        lines[2].contains("the model asks: which port?"),
        "{}",
        lines[2]
    );
    let json: Vec<Value> = serde_json::from_str(&project.ralph(&["top", "--json"]).stdout).unwrap();
    assert_eq!(json[0]["status"], "running");
    assert!(json[0]["activity"].as_str().unwrap().contains("sleep 600"));
    assert_eq!(json[1]["activity"], Value::Null);
    assert_eq!(json[1]["repo"], other.repo().display().to_string());
    project.ralph(&["stop"]).expect(0);
    live.wait().expect(10);
    assert_eq!(project.ralph(&["top"]).expect(0).stdout.lines().count(), 2);
}

#[test]
fn last_and_task_ids_mean_the_runs_of_this_repository_first() {
    let project = Project::new().script(&[finish()]);
    let other = Project::new()
        .env("RALPH_HOME", project.home().display().to_string())
        .script(&[claiming(&["M1.1", "M1.2"], &work())]);
    let id = |project: &Project, name: &str| {
        let shown = project.ralph(&["show", name, "--json"]).expect(0);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        shown["id"].as_str().unwrap().to_owned()
    };
    other.run().expect(0);
    let others = id(&other, "last");
    assert_eq!(
        id(&project, "last"),
        others,
        "the repository has no run yet"
    );
    project.run().expect(0);
    let own = id(&project, "last");
    assert_ne!(own, others);
    assert_eq!(id(&other, "last"), others);
    assert_eq!(id(&other, "task"), others);
    assert_eq!(id(&other, &own), own, "an id means its run everywhere");
    for (args, count) in [
        (&["runs"][..], 3),
        (&["ls", "--all"], 3),
        (&["ps", "-a"], 3),
    ] {
        let listed = other.ralph(args).expect(0);
        assert_eq!(listed.stdout.lines().count(), count, "{}", listed.stdout);
    }
    let listed = other.ralph(&["runs"]).stdout;
    assert!(!listed.contains(&own), "{listed}");
    assert!(
        listed.ends_with("1 run of other repositories; `ralph runs --all` lists them\n"),
        "{listed}"
    );
    let json: Vec<Value> = serde_json::from_str(&other.ralph(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(json.len(), 2, "scripts get all runs");
}

#[test]
fn a_wrong_word_suggests_the_right_one() {
    let project = Project::new();
    for (word, suggested) in [
        ("statsu", "status"),
        ("stpo", "stop"),
        ("resmue", "resume"),
        ("lsit", "list"),
        ("anwser", "answer"),
        ("tpo", "top"),
    ] {
        let refused = project.ralph(&[word]).expect(2);
        let expected = format!(
            "ralph: unknown command `{word}` — ralph has no such command — did you mean `{suggested}`?\n"
        );
        assert_eq!(refused.stderr, expected);
    }
    let unlike = project.ralph(&["xyzzy"]).expect(2);
    assert!(
        unlike.stderr.ends_with("— see `ralph --help`\n"),
        "{}",
        unlike.stderr
    );
}

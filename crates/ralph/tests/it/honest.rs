//! Runs with failures or user commands: in every case the audit passes.

use std::fs;
use std::path::{Path, PathBuf};

use ralph_guest::best_effort;
use ralph_test::{BASE_IMAGE, skip_without_docker};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::project::{
    LiveRun, Project, actions, claiming, commit, control, finish, run, work, write,
};

/// A command that waits for a file outside the sandbox, so that a test controls its end. It first
/// creates the file [`started_file`].
fn wait_for(file: &Path) -> String {
    let (started, file) = (started_file(file), file.display());
    format!(
        "touch {}; while ! test -e {file}; do sleep 0.02; done",
        started.display()
    )
}

fn started_file(file: &Path) -> PathBuf {
    file.with_extension("started")
}

/// Waits until the newest record is of this type: the run then blocks in the next step.
fn wait_for_last_event(live: &LiveRun<'_>, kind: &str) {
    live.wait_until(kind, |journal| {
        journal.last().is_some_and(|event| event["type"] == kind)
    });
}

/// Asserts that the run can be audited now and passes the audit after it was resumed.
#[track_caller]
fn assert_resumes(project: &Project) {
    project.audit();
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(project.show()["status"], "succeeded");
    project.audit();
}

/// Actions that commit and then wait in a command until a test has removed the sandbox.
fn committing(command: &str) -> Value {
    claiming(
        &["M1.1"],
        &[
            write("a.txt", "one\n"),
            commit("One"),
            write("c.txt", "not committed\n"),
            run(command),
            write("d.txt", "never\n"),
        ],
    )
}

/// Removes the directory of the sandbox, in which a command may still write.
fn remove_sandbox(project: &Project) {
    let directory = project.sandbox().parent().unwrap().to_owned();
    while directory.exists() {
        best_effort(fs::remove_dir_all(&directory));
    }
}

/// Waits until a command of the model runs.
fn wait_for_command(live: &LiveRun<'_>) {
    live.wait_until("a command", |journal| {
        let is_run = |event: &Value| event["type"] == "action_started" && event["action"] == "run";
        journal.iter().any(is_run)
    });
}

#[test]
fn a_sandbox_that_is_lost_in_an_action() {
    for (with_labels, signal) in [(false, None), (true, None), (true, Some(Signal::INT))] {
        let project = Project::new();
        let go = project.path("go");
        let project = project.script(&[committing(&wait_for(&go)), finish()]);
        let live = project.start();
        live.wait_until("the command runs", |_| started_file(&go).exists());
        let labels = project.sandbox().parent().unwrap().with_extension("json");
        remove_sandbox(&project);
        if with_labels {
            fs::remove_file(labels).unwrap();
        }
        match signal {
            Some(signal) => live.signal(signal),
            None => fs::write(&go, "").unwrap(),
        }
        live.wait().expect(if signal.is_some() { 130 } else { 11 });
        assert_resumes(&project);
        let outcomes = project.event_values("iteration_finished", "outcome");
        assert_eq!(outcomes[0], "sandbox_lost", "{outcomes:?}");
        // The model and the user see the failed import.
        let refused = project.event_values("import_refused", "why");
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(project.prompt(2).contains("is lost with its sandbox"));
        assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    }
}

#[test]
fn a_sandbox_that_is_lost_while_the_process_is_killed() {
    for kind in ["action_started", "model_replied", "iteration_started"] {
        let project = Project::new().script(&[committing("sleep 60"), finish(), finish()]);
        let live = project.start();
        live.wait_for_event(kind, 1);
        live.signal(Signal::KILL);
        live.wait();
        remove_sandbox(&project);
        assert_resumes(&project);
    }
}

#[test]
fn a_container_and_its_volume_that_are_lost_in_an_action() {
    if skip_without_docker() {
        return;
    }
    let wait = actions(&[write("c.txt", "three\n"), commit("Three"), run("sleep 60")]);
    let project = Project::new()
        .set("sandbox_provider", "docker")
        .set("sandbox_image", BASE_IMAGE)
        .script(&[wait, finish()]);
    let live = project.start();
    wait_for_command(&live);
    project.remove_docker_objects();
    live.wait().expect(11);
    assert_resumes(&project);
    project.remove_docker_objects();
}

#[test]
fn commands_that_remove_the_workspace() {
    let removals = [
        "rm -rf .",
        "rm -rf \"$PWD\"",
        "rm -rf ./* ./.[!.]*",
        "rm -rf .git",
        "rm -rf .ralph",
        "rm -rf .ralph .git",
        "rm -rf ralph_task.md .ralph/iterations .ralph/guardrails.md",
        "cd .. && rm -rf repo scratch home tmp",
    ];
    let mut script = Vec::new();
    for removal in removals {
        script.push(actions(&[
            write("c.txt", removal),
            commit("Before"),
            run(&format!("({removal}) 2>&1; true")),
            write("d.txt", removal),
            commit("After"),
            run("git status --porcelain; ls -a"),
        ]));
    }
    // The commits include the base's own file.
    let repaired = [&[write("base.txt", "base\n")], &work()[..]].concat();
    script.push(claiming(&["M1.1", "M1.2"], &repaired));
    let project = Project::new().set("max_iterations", "20").script(&script);
    project.run().expect(0);
    project.audit();
}

#[test]
fn checks_that_remove_the_workspace() {
    // In the workspace and in the clean room, or in the clean room alone.
    let everywhere = "rm -rf \"$PWD\"";
    for (removal, code) in [
        (everywhere.to_owned(), 10),
        ("test -d .ralph || rm -rf \"$PWD\"/*".to_owned(), 0),
        ("test -d .ralph || rm -rf .git".to_owned(), 10),
        (format!("test -d .ralph || {everywhere}"), 10),
    ] {
        let body = format!(
            "# Task: Two\n\n## Success criteria\n\n- [ ] M1.1 One\n  - verify: `grep -q one a.txt && {{ {removal}; }}`\n\
             - [ ] M1.2 Two\n  - verify: `grep -q two b.txt`\n"
        );
        let project = Project::new()
            .body(&body)
            .set("max_iterations", "2")
            .script(&[finish(), finish()]);
        project.run().expect(code);
        project.audit();
    }
}

/// A project whose test command waits for `go` only in the clean room, after a first iteration that
/// completes the task.
fn with_slow_clean_room(project: Project) -> (Project, PathBuf) {
    let go = project.path("go");
    let command = format!("test -d .ralph || {{ {}; }}", wait_for(&go));
    let project = project
        .set("test_command", &format!("'{command}'"))
        .script(&[finish()]);
    (project, go)
}

/// Starts it and returns when the check runs in the clean room.
fn start_in_clean_room(project: &Project) -> LiveRun<'_> {
    let live = project.start();
    live.wait_for_event("verify_started", 1);
    live.wait_until("the room of the test command", |journal| {
        let started = journal.iter().rposition(|event| {
            event["type"] == "check_started"
                && event["command"]
                    .as_str()
                    .is_some_and(|c| c.contains("while"))
        });
        started.is_some_and(|at| {
            let mut later = journal[at..].iter();
            later.any(|event| event["type"] == "sandbox_created")
        })
    });
    live
}

#[test]
fn a_pause_during_the_verification() {
    let (project, go) = with_slow_clean_room(Project::new());
    let live = start_in_clean_room(&project);
    project.ralph(&["pause", "last"]).expect(0);
    fs::write(&go, "").unwrap();
    live.wait_for_status("paused");
    project.audit();
    project.ralph(&["resume", "last"]).expect(0);
    live.wait().expect(0);
    let statuses = project.event_values("status_changed", "status");
    let tail = &statuses[statuses.len() - 4..];
    assert_eq!(tail, ["verifying", "paused", "verifying", "succeeded"]);
    project.audit();
}

#[test]
fn a_pause_during_the_verification_whose_process_is_killed() {
    let (project, go) = with_slow_clean_room(Project::new());
    let live = start_in_clean_room(&project);
    project.ralph(&["pause", "last"]).expect(0);
    fs::write(&go, "").unwrap();
    live.wait_for_status("paused");
    live.signal(Signal::KILL);
    live.wait();
    assert_resumes(&project);
}

#[test]
fn signals_during_the_verification() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let (project, go) = with_slow_clean_room(Project::new());
        let live = start_in_clean_room(&project);
        live.signal(signal);
        let code = if signal == Signal::KILL { -1 } else { 130 };
        live.wait().expect(code);
        fs::write(&go, "").unwrap();
        assert_resumes(&project);
    }
}

#[test]
fn a_stop_during_the_verification() {
    let (project, _go) = with_slow_clean_room(Project::new());
    let live = start_in_clean_room(&project);
    project.ralph(&["stop", "last"]).expect(0);
    live.wait();
    assert_eq!(project.show()["status"], "stopped");
    project.audit();
}

/// A stopped run is never resumed, so the stop itself cleans up after the dead process.
#[test]
fn a_kill_in_the_clean_room_and_a_stop() {
    let (project, _go) = with_slow_clean_room(Project::new());
    let live = start_in_clean_room(&project);
    live.signal(Signal::KILL);
    live.wait();
    let log = project.run_dir().join("files/activity.log");
    let mut torn = fs::read(&log).unwrap();
    torn.extend_from_slice(b"half a li");
    fs::write(&log, torn).unwrap();
    project.ralph(&["stop", "last"]).expect(0);
    assert_eq!(project.show()["status"], "stopped");
    project.audit();
}

#[test]
fn a_baseline_that_is_killed() {
    let project = Project::new();
    let go = project.path("go");
    let project = project
        .set("verification", "{baseline: true}")
        .set("test_command", &format!("'{}'", wait_for(&go)))
        .script(&[finish()]);
    let live = project.start();
    live.wait_for_event("baseline_started", 1);
    wait_for_last_event(&live, "sandbox_created");
    live.signal(Signal::KILL);
    live.wait();
    fs::write(&go, "").unwrap();
    assert_resumes(&project);
}

#[test]
fn a_rotation_in_the_middle_of_the_actions() {
    let project = Project::new();
    let go = project.path("go");
    let waiting = actions(&[
        write("c.txt", "three\n"),
        run(&wait_for(&go)),
        write("d.txt", "never\n"),
    ]);
    let project = project.script(&[waiting, finish()]);
    let live = project.start();
    live.wait_for_event("action_started", 2);
    project.ralph(&["rotate", "last"]).expect(0);
    fs::write(&go, "").unwrap();
    live.wait().expect(0);
    assert_eq!(project.results(1), ["done", "ran 0", "skipped"]);
    project.audit();
}

/// Applies other limits.
#[track_caller]
fn limit_to(project: &Project, iterations: &str) {
    let text = project.task_text();
    let key = "max_iterations: ";
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.strip_prefix(key) {
            Some(_) => format!("{key}{iterations}"),
            None => line.to_owned(),
        })
        .collect();
    let changed = project.path("changed.md");
    fs::write(&changed, lines.join("\n") + "\n").unwrap();
    let path = changed.display().to_string();
    project.ralph(&["task", "last", &path]).expect(0);
}

#[test]
fn a_budget_that_is_raised_and_lowered_again() {
    let ask = actions(&[control("pause", "where?")]);
    let project = Project::new().set("max_iterations", "2").script(&[
        ask.clone(),
        actions(&[write("c.txt", "c\n")]),
        actions(&[write("d.txt", "d\n")]),
        ask,
        finish(),
    ]);
    project.run().expect(11);
    limit_to(&project, "9");
    project.audit();
    // Four iterations, two more than the original limit.
    project.ralph(&["resume", "last"]).expect(11);
    limit_to(&project, "3");
    project.audit();
    let ended = project.ralph(&["resume", "last"]);
    assert_eq!(ended.code, 10, "{}", ended.combined());
    assert_eq!(project.show()["iteration"], 4);
    project.audit();
}

#[test]
fn a_task_that_is_changed_while_a_command_runs() {
    let project = Project::new();
    let go = project.path("go");
    let project = project.script(&[actions(&[run(&wait_for(&go))]), finish()]);
    let live = project.start();
    live.wait_for_event("action_started", 1);
    limit_to(&project, "4");
    project.audit();
    fs::write(&go, "").unwrap();
    live.wait().expect(0);
    assert_eq!(project.events("contract_changed").len(), 1);
    project.audit();
}

#[test]
fn notes_and_guardrails_for_a_run_without_a_process() {
    let ask = actions(&[control("pause", "where?")]);
    let project = Project::new()
        .set("mode", "guided")
        .script(&[ask, finish()]);
    project.run().expect(11);
    project.audit();
    project.ralph(&["note", "last", "use a.txt"]).expect(0);
    project.audit();
    let sign = ["--name", "n", "--trigger", "t", "--instruction", "i"];
    project
        .ralph(&[&["guardrail", "last"], &sign[..]].concat())
        .expect(0);
    project.audit();
    // The user may edit the notes.
    let notes = project.run_dir().join("files/notes.md");
    fs::write(&notes, "By hand.\n").unwrap();
    project.audit();
    assert_resumes(&project);
}

#[test]
fn a_doctor_whose_report_is_applied() {
    let report = json!({"when": "You are the doctor of a Ralph loop", "reply": {
        "summary": "Nobody writes the file.", "patterns": [], "root_causes": [],
        "guardrails": [{"name": "n", "trigger": "t", "instruction": "i", "evidence": "e"}],
        "spec_edits": [{"find": "One is there", "replace": "One is there, in a.txt", "why": "clearer"}],
        "model_profile": null}, "usage": {"input_tokens": 500, "output_tokens": 50}});
    let ask = actions(&[control("pause", "where?")]);
    let project = Project::new().script(&[report, ask, finish()]);
    project.run().expect(11);
    project.ralph(&["diagnose", "last", "--apply"]).expect(0);
    project.audit();
    assert_resumes(&project);
}

#[test]
fn a_usage_limit_that_is_waited_for_and_interrupted() {
    for signal in [Signal::INT, Signal::KILL] {
        let limit =
            |seconds: u32| json!({"error": {"status": 429, "retry_after": seconds, "quota": true}});
        let project = Project::new().script(&[limit(3600), finish()]);
        let live = project.start();
        live.wait_for_status("waiting_quota");
        project.audit();
        live.signal(signal);
        live.wait();
        project.write_script(&[limit(1), finish()]);
        assert_resumes(&project);
        let statuses = project.event_values("status_changed", "status");
        let waits = statuses.iter().filter(|status| *status == "waiting_quota");
        assert_eq!(waits.count(), 2, "{statuses:?}");
    }
}

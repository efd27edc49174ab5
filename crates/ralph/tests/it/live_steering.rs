//! Steering a run from another process; clean shutdown by signals; model failures and recovery.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::project::{
    LiveRun, Project, actions, append, claiming, commit, control, finish, run, write,
};

/// Maximum reaction time of a running process: much shorter than its commands.
const SOON: Duration = Duration::from_secs(20);

/// Short consecutive commands, with points for interruption between them.
fn steps() -> Value {
    actions(&vec![run("sleep 0.7"); 48])
}

/// Sends a command and waits for the expected status.
#[track_caller]
fn steer(project: &Project, live: &LiveRun<'_>, command: &str, status: &str) {
    let start = Instant::now();
    project.ralph(&[command, "task"]).expect(0);
    live.wait_for_status(status);
    let took = start.elapsed();
    assert!(took < SOON, "{command} took {took:?}");
}

/// Returns whether a process with this command line exists.
fn is_running(marker: &str) -> bool {
    fs::read_dir("/proc")
        .unwrap()
        // Processes end while they are listed.
        .filter_map(ralph_guest::available)
        .any(|entry| {
            fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
        })
}

#[test]
fn a_run_pauses_resumes_and_restarts_on_command() {
    let project = Project::new().script(&[steps(), steps(), finish()]);
    let mut live = project.start();
    live.wait_for_event("action_finished", 1);
    let early = project.ralph(&["resume", "last"]).expect(1);
    assert!(
        early.stderr.starts_with("ralph: cannot resume run `"),
        "{}",
        early.stderr
    );
    assert!(
        early.stderr.contains("it is not paused"),
        "{}",
        early.stderr
    );

    steer(&project, &live, "pause", "paused");
    assert!(live.is_alive());
    assert_eq!(project.show()["reason"], "paused by the user");
    let again = project.ralph(&["pause", "last"]).expect(1);
    assert!(
        again.stderr.contains("it is already paused"),
        "{}",
        again.stderr
    );
    // The clock of the budget is stopped.
    std::thread::sleep(Duration::from_millis(1500));
    steer(&project, &live, "resume", "running");
    let counted_ms = counted_ms(&project);
    assert!(
        counted_ms < 700,
        "{counted_ms} ms of the pause were counted"
    );

    project.ralph(&["rotate", "last"]).expect(0);
    live.wait_for_event("iteration_started", 2);
    assert_eq!(
        project.event_values("iteration_finished", "outcome"),
        ["rotated"]
    );
    steer(&project, &live, "pause", "paused");
    steer(&project, &live, "resume", "running");
    project.ralph(&["rotate", "last"]).expect(0);
    live.wait().expect(0);
    assert_eq!(project.show()["iteration"], 3);
    project.audit();
}

/// Returns the active time counted between the first pause and the next record.
fn counted_ms(project: &Project) -> u64 {
    let text = fs::read_to_string(project.run_dir().join("journal.jsonl")).unwrap();
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let paused = records
        .iter()
        .position(|record| record["event"]["status"] == "paused")
        .unwrap();
    let resumed = records
        .iter()
        .rposition(|record| record["event"]["status"] == "running")
        .unwrap();
    let at = |index: usize| records[index]["active_ms"].as_u64().unwrap();
    at(resumed) - at(paused)
}

#[test]
fn a_stop_ends_the_whole_tree_at_once() {
    let project = Project::new();
    let marker = format!("4{}", std::process::id());
    let tree = format!(
        "(setsid sleep {marker} &) ; sleep {marker} & sh -c 'trap \"\" TERM; sleep {marker}; true'"
    );
    let project = project.script(&[actions(&[run(&tree), run("true")]), finish()]);
    let live = project.start();
    live.wait_for_event("action_started", 1);
    live.wait_until("the tree is there", |_| {
        is_running(&format!("sleep\0{marker}"))
    });
    let start = Instant::now();
    project.ralph(&["stop", "last"]).expect(0);
    let ended = live.wait().expect(10);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert!(!is_running(&format!("sleep\0{marker}")));
    assert!(ended.stdout.contains("stopped"), "{}", ended.stdout);
    assert_eq!(project.show()["status"], "stopped");
    // Remains for inspection.
    assert!(project.sandbox().join("base.txt").exists());
    for command in ["pause", "resume", "rotate", "stop"] {
        let refused = project.ralph(&[command, "last"]).expect(1);
        assert!(
            refused.stderr.contains("it was stopped"),
            "{}",
            refused.stderr
        );
    }
    project.audit();
}

#[test]
fn a_signal_pauses_the_run_each_time() {
    let project = Project::new().script(&[actions(&[run("sleep 600")]), finish()]);
    for (signal, opened) in [(Signal::INT, 1), (Signal::TERM, 2)] {
        let live = if opened == 1 {
            project.start()
        } else {
            project.resume()
        };
        live.wait_for_event("run_opened", opened);
        live.wait_until("the command runs", |journal| {
            journal
                .last()
                .is_some_and(|event| event["type"] == "action_started")
        });
        let start = Instant::now();
        live.signal(signal);
        let ended = live.wait().expect(130);
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        assert!(ended.stdout.contains("ralph resume "), "{}", ended.stdout);
        let show = project.show();
        assert_eq!(
            (&show["status"], &show["reason"]),
            (&json!("paused"), &json!("the program was interrupted"))
        );
    }
    let refused = project.run().expect(1);
    assert!(
        refused.stderr.contains("continue it with `ralph resume "),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.stderr.lines().count(), 1);
    project.audit();
}

#[test]
fn an_interrupted_run_is_finished_by_resume() {
    let once = "if [ -e ../seen ]; then echo again; else touch ../seen; sleep 30; fi";
    let project = Project::new().script(&[actions(&[run(once)]), finish()]);
    let live = project.start();
    live.wait_until("the command runs", |_| {
        project.home().join("sandboxes").exists() && seen(&project)
    });
    live.signal(Signal::INT);
    live.wait().expect(130);
    let ended = project.ralph(&["resume", "last"]).expect(0);
    assert!(
        ended.stdout.contains("again") || project.artifact(1, "test_output.txt").contains("again")
    );
    assert_eq!(project.results(1), ["interrupted", "ran 0"]);
    assert_eq!(project.show()["iteration"], 2);
    project.audit();
}

fn seen(project: &Project) -> bool {
    let created = project.events("sandbox_created");
    !created.is_empty() && project.sandbox().join("../seen").exists()
}

#[test]
fn a_second_run_of_a_live_task_is_refused() {
    let project = Project::new().script(&[steps(), finish()]);
    let live = project.start();
    live.wait_for_event("action_finished", 1);
    let second = project.run().expect(1);
    let told = second.stderr.trim_end();
    assert!(
        told.starts_with("ralph: run `")
            && told.contains("of this task is under way — another process works on it — "),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1);
    assert_eq!(
        fs::read_dir(project.home().join("runs")).unwrap().count(),
        1
    );
    // A waiting run can be stopped, too.
    steer(&project, &live, "pause", "paused");
    steer(&project, &live, "stop", "stopped");
    live.wait().expect(10);
    project.audit();
}

#[test]
fn an_idle_run_can_be_stopped() {
    let project = Project::new().script(&[actions(&[control("pause", "which?")]), finish()]);
    project.run().expect(11);
    for command in ["pause", "rotate"] {
        let refused = project.ralph(&[command, "last"]).expect(1);
        assert!(
            refused
                .stderr
                .starts_with(&format!("ralph: cannot {command} run `")),
            "{}",
            refused.stderr
        );
    }
    project.ralph(&["stop", "last"]).expect(0);
    assert_eq!(project.show()["status"], "stopped");
    project.ralph(&["resume", "last"]).expect(1);
    project.audit();
    // The task can be started again next to the remains of the last run.
    project.write_script(&[finish()]);
    project.run().expect(0);
    assert_eq!(project.show()["branch"], "ralph/task/make-two-files-v2");
}

#[test]
fn a_lost_sandbox_is_recreated_from_the_host_repository() {
    let project = Project::new().script(&[
        claiming(
            &["M1.1"],
            &[
                write("a.txt", "one\n"),
                commit("One"),
                write("b.txt", "two\n"),
                control("pause", "?"),
            ],
        ),
        claiming(
            &["M1.2"],
            &[run("cat a.txt"), write("b.txt", "two\n"), commit("Two")],
        ),
    ]);
    project.run().expect(11);
    fs::remove_dir_all(project.sandbox().parent().unwrap()).unwrap();
    project.ralph(&["resume", "last"]).expect(0);
    let notice = project.event_values("notice", "message");
    assert!(
        notice[0]
            .as_str()
            .unwrap()
            .ends_with("is gone; a new one is created from the last commit that the host has"),
        "{notice:?}"
    );
    assert_eq!(project.results(2), ["ran 0", "done", "done"]);
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    project.audit();
}

#[test]
fn a_failing_provider_costs_no_iteration() {
    let failure = |status: u16| json!({"error": {"status": status, "retry_after": 0.01}});
    let project = Project::new().set("max_iterations", "1").script(&[
        failure(500),
        failure(429),
        failure(503),
        finish(),
    ]);
    let quick = "[model]\nretry_delay = \"1ms\"\nmax_outage = \"0s\"\n";
    project.configure("ralph.toml", quick);
    project.run().expect(0);
    assert_eq!(project.show()["iteration"], 1);
    assert_eq!(project.events("model_failed").len(), 3);
    project.audit();

    // Without time for an outage there are five attempts, then the run pauses for the user.
    let down = Project::new()
        .set("max_iterations", "1")
        .script(&[failure(500)]);
    down.configure("ralph.toml", quick);
    down.run().expect(11);
    assert_eq!(down.events("model_failed").len(), 5);
    assert!(down.show()["reason"].as_str().unwrap().contains("500"));
    down.write_script(&[finish()]);
    down.ralph(&["resume", "last"]).expect(0);
    down.audit();

    let refused = Project::new().script(&[json!({"error": {"status": 401}}), finish()]);
    let ended = refused.run().expect(11);
    assert!(ended.stdout.contains("ralph resume"), "{}", ended.stdout);
    let show = refused.show();
    assert_eq!(show["status"], "paused");
    let reason = show["reason"].as_str().unwrap();
    assert!(
        reason.contains("401") && reason.contains("valid key"),
        "{reason}"
    );
    assert_eq!(refused.events("model_failed").len(), 1);
    // The user supplies a valid key.
    refused.write_script(&[finish()]);
    refused.ralph(&["resume", "last"]).expect(0);
    assert_eq!(refused.show()["iteration"], 1);
    refused.audit();
}

#[test]
fn the_user_answers_in_the_runs_files() {
    let project = Project::new().script(&[
        actions(&[control("pause", "which?")]),
        actions(&[append(".ralph/guardrails.md", "### sign: of the agent\n")]),
        finish(),
    ]);
    project.run().expect(11);
    let files = project.run_dir().join("files");
    fs::write(files.join("notes.md"), "# Notes\nTake the blue one.\n").unwrap();
    let guardrails = project.file("guardrails.md");
    fs::write(
        files.join("guardrails.md"),
        format!("{guardrails}### sign: of a person\n"),
    )
    .unwrap();
    project.ralph(&["resume", "last"]).expect(0);
    let (second, third) = (project.prompt(2), project.prompt(3));
    assert!(second.contains("Take the blue one.") && second.contains("### sign: of a person"));
    assert!(
        third.contains("### sign: of a person\n### sign: of the agent"),
        "{third}"
    );
    assert_eq!(project.events("tamper"), Vec::<Value>::new());
    project.audit();
}

//! Commands hand their runs over to a running server.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::api_client::ApiClient;
use super::fixture::RunningServer;
use crate::project::{Project, actions, control, finish, run};

fn serve(project: &Project) -> (RunningServer, i64) {
    let server = RunningServer::start(project.command(&["serve", "--port", "0", "--json"]));
    let pid = i64::from(server.pid().as_raw_nonzero().get());
    (server, pid)
}

/// Returns the processes that opened the newest run.
fn openers(project: &Project) -> Vec<i64> {
    let pids = project.event_values("run_opened", "pid").into_iter();
    pids.map(|pid| pid.as_i64().unwrap()).collect()
}

fn run_id(project: &Project) -> String {
    let dir = project.run_dir();
    dir.file_name().unwrap().to_string_lossy().into_owned()
}

fn end(server: RunningServer) {
    let ended = server.end_with(Signal::TERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_run_is_handed_over_and_shown_like_a_run_of_the_command() {
    let project = Project::new().script(&[finish()]);
    let (server, pid) = serve(&project);
    let shown = project.run().expect(0);
    let place = format!("the server (pid {pid}) works on run `{}`", run_id(&project));
    assert!(shown.stdout.contains(&place), "{}", shown.stdout);
    assert_eq!(openers(&project), [pid]);
    let handed_over = shown.stdout.lines().skip(1);
    let handed_over = handed_over.map(without_numbers).collect::<Vec<_>>();

    let shown = project.run_with(&["--local", "--new"]).expect(0);
    assert_ne!(openers(&project), [pid]);
    let local = shown.stdout.lines().map(without_numbers);
    assert_eq!(handed_over, local.collect::<Vec<_>>());

    let records = project.run_with(&["--new", "--json"]).expect(0).stdout;
    assert_eq!(openers(&project), [pid]);
    let journal = std::fs::read_to_string(project.run_dir().join("journal.jsonl")).unwrap();
    let numbers = |text: &str| -> Vec<Value> {
        let records = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.map(|mut record| record["seq"].take()).collect()
    };
    assert_eq!(numbers(&records), numbers(&journal));

    let started = project.run_with(&["--new", "--detach", "--json"]).expect(0);
    let started: Value = serde_json::from_str(&started.stdout).unwrap();
    assert_eq!(started, json!({"run": run_id(&project), "pid": pid}));
    ApiClient::new(&project.home()).wait_for_status(&run_id(&project), "succeeded");
    end(server);
}

/// Replaces what differs between two runs: numbers, commits and branches.
fn without_numbers(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        if word.contains(|letter: char| letter.is_ascii_digit()) || word.contains("ralph/task/") {
            "#"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_command_that_is_interrupted_leaves_its_run_to_the_server() {
    let project = Project::new();
    let file = project.repo().join("continue");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done", file.display());
    let project = project.script(&[actions(&[run(&wait)]), finish()]);
    let (server, pid) = serve(&project);
    let live = project.start();
    live.wait_for_event("action_started", 1);
    live.signal(Signal::INT);
    let detached = live.wait().expect(0);
    let id = run_id(&project);
    let message = format!("detached: run `{id}` continues; `ralph stop {id}` ends it\n");
    assert_eq!(detached.stderr, message);

    // Other commands reach the run through its files.
    project.ralph(&["pause"]).expect(0);
    std::fs::write(&file, "").unwrap();
    let api = ApiClient::new(&project.home());
    api.wait_for_status(&id, "paused");
    assert!(project.ralph(&["runs"]).expect(0).stdout.contains("paused"));
    let top = project.ralph(&["top"]).expect(0);
    assert!(top.stdout.contains("paused"), "{}", top.stdout);
    project.ralph(&["resume"]).expect(0);
    let attached = project.ralph(&["attach"]).expect(0);
    assert!(attached.stdout.contains("succeeded"), "{}", attached.stdout);
    assert_eq!(openers(&project), [pid]);
    project.audit();
    end(server);
}

#[test]
fn a_run_without_a_process_continues_in_the_server() {
    let question = control("pause", "which colour?");
    let project = Project::new().set("max_iterations", "2").script(&[
        actions(&[question]),
        actions(&[]),
        finish(),
    ]);
    project.run().expect(11);
    let (server, pid) = serve(&project);
    // The answer continues the run, which fails because two iterations are all it has.
    let failed = project.ralph(&["answer", "last", "blue"]).expect(10);
    let place = format!("the server (pid {pid}) works on run");
    assert!(failed.stdout.contains(&place), "{}", failed.stdout);
    let continued = project
        .ralph(&["continue", "--max-iterations", "4"])
        .expect(0);
    assert!(continued.stdout.contains(&place), "{}", continued.stdout);
    let opened = openers(&project);
    assert_ne!(opened[0], pid);
    assert_eq!(opened[1..], [pid, pid]);
    project.audit();
    end(server);
}

#[test]
fn a_paused_run_is_resumed_here_with_local() {
    let project = Project::new().script(&[actions(&[control("pause", "why?")]), finish()]);
    let (server, pid) = serve(&project);
    project.run().expect(11);
    project.ralph(&["resume", "--local"]).expect(0);
    let opened = openers(&project);
    assert_eq!((opened.len(), opened[0]), (2, pid));
    assert_ne!(opened[1], pid);
    end(server);
}

#[test]
fn a_question_is_asked_before_the_run_is_handed_over() {
    let project = Project::new().script(&[actions(&[control("pause", "why?")]), finish()]);
    project.run().expect(11);
    let (server, pid) = serve(&project);
    let model = project.model();
    let question = ("Continue it? [Y/n]", "y\n");
    let Some(shown) = project.on_terminal(&["run", "--model", &model], question) else {
        println!("skipped: there is no program `script`");
        return;
    };
    assert_eq!(shown.code, 0, "{}", shown.stdout);
    assert!(shown.stdout.contains("succeeded"), "{}", shown.stdout);
    let opened = openers(&project);
    assert_eq!((opened.len(), opened[1]), (2, pid));
    end(server);
}

#[test]
fn a_refused_run_is_refused_like_without_a_server() {
    let project = Project::new().script(&[finish()]);
    let (server, _) = serve(&project);
    for args in [
        &["run", "--model", "scripted:/missing.jsonl"][..],
        &["run", "--model", "nobody/nothing"],
        &["run", "missing.md", "--model", "scripted:/missing.jsonl"],
    ] {
        let handed_over = project.ralph(args);
        let local = project.ralph(&[args, &["--local"]].concat());
        assert_eq!(handed_over.stderr, local.stderr, "{args:?}");
        assert_eq!(handed_over.code, local.code, "{args:?}");
        assert!(!local.stderr.is_empty(), "{args:?}: {local:?}");
    }
    assert!(!project.home().join("runs").exists(), "a run was created");
    project.run().expect(0);
    let handed_over = project.ralph(&["resume"]).expect(1);
    let local = project.ralph(&["resume", "--local"]).expect(1);
    assert_eq!(handed_over.stderr, local.stderr);
    end(server);
}

#[test]
fn a_server_with_another_environment_does_not_get_the_run() {
    let project = Project::new().script(&[finish()]);
    let (server, pid) = serve(&project);
    let project = project.env("ACME_API_KEY", "0123456789abcdef");
    let refused = project.run().expect(1);
    assert_eq!(
        refused.stderr,
        "ralph: the server cannot work on this run — its environment differs in ACME_API_KEY — \
         use `--local`, or start the server with the same variables\n"
    );
    project.run_with(&["--local"]).expect(0);
    assert_ne!(openers(&project), [pid]);
    end(server);
}

#[test]
fn the_files_of_a_dead_server_are_ignored() {
    let project = Project::new().script(&[finish()]);
    let (server, pid) = serve(&project);
    let file = project.home().join("server.json");
    server.end_with(Signal::KILL);
    assert!(file.exists());
    project.run().expect(0);
    assert_ne!(openers(&project), [pid]);
    for args in [&["runs"][..], &["show"], &["top"], &["attach"], &["logs"]] {
        project.ralph(args).expect(0);
    }
    let login = project.ralph(&["serve", "--login"]);
    assert!(
        login.stderr.contains("there is no running server"),
        "{login:?}"
    );
}

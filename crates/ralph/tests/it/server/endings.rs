//! The end of a server by a signal or a crash, and the next server of its state directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::api_client::ApiClient;
use super::tasks::{
    audit, let_commands_end, request, serve, waiting_command, write_script, write_task,
};
use crate::project::{Project, actions, finish, run};

/// Returns the content of every file below a directory.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                found.insert(path.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_signal_parks_runs_in_every_phase_and_the_next_server_continues_them() {
    let project = Project::new();
    let api = ApiClient::new(&project.home());
    let waiting = waiting_command(&project);
    let slow_test = format!("test -s base.txt && {{ [ ! -e a.txt ] || {waiting}; }}");
    for name in ["asking", "acting", "queued", "paused"] {
        write_task(&project, name, "test -s base.txt");
    }
    write_task(&project, "testing", &slow_test);
    let mut slow_reply = finish();
    slow_reply["delay_ms"] = json!(3_600_000);
    let stubborn = format!("trap '' TERM; {waiting}");
    let commands = [actions(&[run(&stubborn)]), finish()];

    let server = serve(&project, "3");
    let start = |name: &str, script: &[Value]| {
        api.start_run(&request(&project, &format!("{name}.md"), script))
    };
    let paused = start("paused", &[actions(&[run("sleep 1")]), finish()]);
    api.wait_for_event(&paused, "action_started");
    api.post(&format!("/api/v1/runs/{paused}/pause"), &Value::Null);
    let asking = start("asking", &[slow_reply]);
    let acting = start("acting", &commands);
    let testing = start("testing", &[finish()]);
    api.wait_for_status(&paused, "paused");
    api.wait_for_event(&asking, "model_asked");
    api.wait_for_event(&acting, "action_started");
    api.wait_for_event(&testing, "check_started");
    let queued = start("queued", &[finish()]);
    api.wait_for_run(&queued, "it is queued", |run| run["queue_position"] == 1);

    let ended = server.end_with(Signal::TERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let log = fs::read_to_string(project.home().join("log/ralph.log")).unwrap();
    assert!(!log.contains("some runs are not parked"), "{log}");
    for run in [&asking, &acting, &testing, &queued, &paused] {
        assert_eq!(api.last_status(run), "paused", "{run}");
        audit(&project, run);
    }

    write_script(&project, "asking.md", &[finish()]);
    let_commands_end(&project);
    let server = serve(&project, "3");
    for run in [&asking, &acting, &testing, &queued] {
        api.wait_for_status(run, "succeeded");
        audit(&project, run);
    }
    // The user paused this one.
    assert_eq!(api.last_status(&paused), "paused");
    api.post(&format!("/api/v1/runs/{paused}/resume"), &Value::Null);
    api.wait_for_status(&paused, "succeeded");
    assert_eq!(server.end_with(Signal::TERM).code, Some(0));
}

#[test]
fn a_second_signal_ends_the_server_at_once_and_loses_nothing() {
    let project = Project::new();
    let api = ApiClient::new(&project.home());
    write_task(&project, "acting", "test -s base.txt");
    // A command that ignores the request to end is killed after two seconds.
    let stubborn = format!("trap '' TERM; {}", waiting_command(&project));
    let script = [actions(&[run(&stubborn)]), finish()];
    let server = serve(&project, "2");
    let acting = api.start_run(&request(&project, "acting.md", &script));
    api.wait_for_event(&acting, "action_started");
    let pid = server.pid();
    while kill_process(pid, Signal::TERM).is_ok() && !is_zombie(pid) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = server.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    audit(&project, &acting);

    let_commands_end(&project);
    let server = serve(&project, "2");
    api.wait_for_status(&acting, "succeeded");
    audit(&project, &acting);
    assert_eq!(server.end_with(Signal::TERM).code, Some(0));
}

/// Returns whether a child process has ended.
fn is_zombie(pid: rustix::process::Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn a_second_server_of_a_state_directory_is_refused_and_changes_nothing() {
    let project = Project::new().script(&[finish()]);
    project.run().expect(0);
    let server = serve(&project, "2");
    let api = ApiClient::new(&project.home());
    while !api.get("/api/v1/runs")["catching_up"].is_null() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = files(&project.home());
    let second = project.ralph(&["serve", "--port", "0"]);
    assert_eq!(second.code, 1, "{second:?}");
    let pid = server.pid().as_raw_nonzero();
    let start = format!("ralph: state directory in use by pid {pid} since ");
    assert!(second.stderr.starts_with(&start), "{second:?}");
    assert_eq!((second.stderr.lines().count(), &*second.stdout), (1, ""));
    let after = files(&project.home());
    // The server itself works on its index.
    let is_index = |name: &&String| name.contains("/index.db");
    let changed: Vec<&String> = after
        .iter()
        .filter(|(name, content)| before.get(*name) != Some(content))
        .map(|(name, _)| name)
        .filter(|name| !is_index(name))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
    assert_eq!(before.len(), after.len());
    assert_eq!(server.end_with(Signal::TERM).code, Some(0));
}

#[test]
fn a_killed_server_without_its_index_has_all_runs_again() {
    let project = Project::new().script(&[finish()]);
    project.run().expect(0);
    let finished = project
        .run_dir()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let api = ApiClient::new(&project.home());
    let script = [actions(&[run(&waiting_command(&project))]), finish()];
    let server = serve(&project, "2");
    let mut runs = vec![finished];
    let short = [actions(&[run("sleep 1")]), finish()];
    write_task(&project, "paused", "test -s base.txt");
    runs.push(api.start_run(&request(&project, "paused.md", &short)));
    for name in ["one", "two"] {
        write_task(&project, name, "test -s base.txt");
        runs.push(api.start_run(&request(&project, &format!("{name}.md"), &script)));
    }
    let paused = runs[1].clone();
    api.wait_for_event(&paused, "action_started");
    api.post(&format!("/api/v1/runs/{paused}/pause"), &Value::Null);
    api.wait_for_status(&paused, "paused");
    api.wait_for_event(&runs[3], "action_started");
    server.end_with(Signal::KILL);

    let_commands_end(&project);
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        let path = project.home().join(name);
        if path.exists() {
            fs::remove_file(path).unwrap();
        }
    }
    let server = serve(&project, "2");
    for run in &runs[2..] {
        api.wait_for_status(run, "succeeded");
        audit(&project, run);
    }
    let listed = api.get("/api/v1/runs");
    let listed = listed["runs"].as_array().unwrap().iter();
    let mut listed: Vec<&str> = listed.map(|run| run["id"].as_str().unwrap()).collect();
    listed.sort_unstable();
    runs.sort_unstable();
    assert_eq!(listed, runs);
    api.post(&format!("/api/v1/runs/{paused}/resume"), &Value::Null);
    api.wait_for_status(&paused, "succeeded");
    assert_eq!(server.end_with(Signal::TERM).code, Some(0));
}

//! A run that crashes the server whenever it is opened.

use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::api_client::ApiClient;
use super::fixture::RunningServer;
use crate::project::{Project, finish};

/// Returns a server that is killed when it opens a file.
fn killed_at(file: &Path, serve: &Command) -> Command {
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "signal=none", "-P"])
        .arg(file)
        .args(["-e", "trace=openat", "-e", "inject=openat:signal=SIGKILL"])
        .arg(serve.get_program())
        .args(serve.get_args())
        .env_clear()
        .envs(
            serve
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(serve.get_current_dir().unwrap());
    strace
}

#[test]
fn a_run_that_crashes_every_server_is_paused_and_the_others_continue() {
    let project = Project::new();
    let api = ApiClient::new(&project.home());
    let mut slow = finish();
    slow["delay_ms"] = json!(3_600_000);
    let mut runs = Vec::new();
    let serve = || project.command(&["serve", "--port", "0", "--json"]);
    let server = RunningServer::start(serve());
    for name in ["one", "bad", "two"] {
        let text = project
            .task_text()
            .replace("task_id: task", &format!("task_id: {name}"));
        std::fs::write(project.repo().join(format!("{name}.md")), text).unwrap();
        std::fs::write(project.path(name), slow.to_string()).unwrap();
        runs.push(api.start_run(&json!({
            "directory": project.repo(),
            "file": format!("{name}.md"),
            "model": format!("scripted:{}", project.path(name).display()),
            "sandbox": "local",
        })));
    }
    for run in &runs[..2] {
        api.wait_for_event(run, "model_asked");
    }
    server.end_with(Signal::KILL);

    // Only the opening of this run reads its script.
    let script = project.path("bad");
    for crash in 1..=3 {
        let status = killed_at(&script, &serve()).output().unwrap().status;
        assert_eq!(status.code(), None, "crash {crash}: {status:?}");
    }
    for name in ["one", "two"] {
        std::fs::write(project.path(name), finish().to_string()).unwrap();
    }
    let server = RunningServer::start(killed_at(&script, &serve()));
    api.wait_for_status(&runs[1], "paused");
    for run in [&runs[0], &runs[2]] {
        api.wait_for_status(run, "succeeded");
    }
    let details = api.get(&format!("/api/v1/runs/{}", runs[1]));
    let reason = details["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("3 times"), "{details}");
    end(&api, server);

    // The user repairs the cause and continues the run.
    std::fs::write(&script, finish().to_string()).unwrap();
    let server = RunningServer::start(serve());
    api.post(&format!("/api/v1/runs/{}/resume", runs[1]), &Value::Null);
    api.wait_for_status(&runs[1], "succeeded");
    for run in &runs {
        let audit = project.ralph(&["audit", run]);
        assert_eq!(audit.code, 0, "{}", audit.combined());
    }
    assert_eq!(server.end_with(Signal::TERM).code, Some(0));
}

/// Ends a server that strace runs.
fn end(api: &ApiClient, server: RunningServer) {
    let pid = api.record().unwrap()["pid"].as_i64().unwrap();
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(server.wait().code, Some(0));
}

//! The notifications of the user's settings, for runs of the server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::{TestProject, TestServer, WAIT_TIMEOUT, finishing_reply, reply};

/// Configures a command that appends a line per notification, and returns the file that it writes.
fn with_command(project: &TestProject) -> std::path::PathBuf {
    let (program, output) = (project.path("tell"), project.path("told"));
    let script = "#!/bin/sh\ncat >/dev/null\necho \"$RALPH_NOTIFY $RALPH_RUN\" >> \"$1\"\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = project.path("user/.config/ralph");
    fs::create_dir_all(&config).unwrap();
    let (program, told) = (program.display().to_string(), output.display().to_string());
    let text = format!("[notify]\ncommand = [{program:?}, {told:?}]\n");
    fs::write(config.join("config.toml"), text).unwrap();
    output
}

async fn wait_for_lines(path: &std::path::Path, expected: &[String]) {
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(path).unwrap_or_else(|_| String::new());
        let lines: Vec<&str> = text.lines().collect();
        if lines == expected {
            return;
        }
        assert!(
            start.elapsed() < WAIT_TIMEOUT,
            "{lines:?} instead of {expected:?}"
        );
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_the_server_notifies_once_and_a_restart_repeats_nothing() {
    let project = TestProject::new();
    let told = with_command(&project);
    let question = reply(&[json!({"type": "pause", "reason": "which one?"})]);
    project.write_script(&[question, finishing_reply()]);
    let server = TestServer::start_for(project).await;
    let run = server.start_run().await;
    server.wait_for_status(&run, "paused").await;
    let needs_you = format!("needs-you {run}");
    wait_for_lines(&told, std::slice::from_ref(&needs_you)).await;
    let project = server.stop().await;
    let server = TestServer::start_for(project).await;
    server.wait_for_status(&run, "paused").await;
    let second = server.post("/api/v1/runs", &server.project.new_run()).await;
    // The start of another run shows that the restarted server works; it is refused beside an unfinished one.
    assert!(
        second.status.is_client_error() || second.status.is_success(),
        "{}",
        second.text()
    );
    drop(server.stop().await);
    let text = fs::read_to_string(&told).unwrap_or_else(|_| String::new());
    let repeated = text.lines().filter(|line| **line == needs_you).count();
    assert!(repeated <= 1, "{text}");
}

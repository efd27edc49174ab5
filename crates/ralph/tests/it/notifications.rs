//! Notifications reach a command and a server, and never affect a run.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ralph_core::parse_value;
use serde_json::Value;

use crate::project::{Project, actions, control, finish};

/// Writes a program and the setting that starts it; returns the path of the file that it writes.
fn with_command(project: &Project, script: &str) -> std::path::PathBuf {
    let program = project.path("tell");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = project.path("told");
    let text = format!(
        "[notify]\ncommand = [{:?}, {:?}]\n",
        program.display().to_string(),
        output.display().to_string()
    );
    project.configure("config.toml", &text);
    output
}

const RECORD: &str =
    "cat > \"$1\"; echo \"$RALPH_NOTIFY|$RALPH_STATUS|$RALPH_TITLE|$RALPH_REASON\" >> \"$1\"";

#[test]
fn a_command_gets_the_result() {
    let project = Project::new().script(&[actions(&[control("pause", "which one?")]), finish()]);
    let told = with_command(&project, RECORD);
    project.run().expect(11);
    let text = fs::read_to_string(&told).unwrap();
    let (json, variables) = text.split_once('\n').unwrap();
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["event"], "needs-you");
    assert_eq!(json["status"], "paused");
    assert_eq!(json["title"], "Make two files");
    assert_eq!(json["id"], project.show()["id"]);
    assert!(
        variables.starts_with("needs-you|paused|Make two files|"),
        "{variables}"
    );
    assert!(variables.contains("which one?"), "{variables}");
    project.ralph(&["resume", "last"]).expect(0);
    let text = fs::read_to_string(&told).unwrap();
    assert!(text.contains("\"event\":\"finished\""), "{text}");
    assert!(
        text.contains("finished|succeeded|Make two files|"),
        "{text}"
    );
}

#[test]
fn only_the_chosen_events_are_notified() {
    let project = Project::new().script(&[finish()]);
    let told = with_command(&project, RECORD);
    let settings = fs::read_to_string(project.user_config_path("config.toml")).unwrap();
    project.configure("config.toml", &format!("{settings}on = [\"failed\"]\n"));
    project.run().expect(0);
    assert!(!told.exists());
}

#[test]
fn a_failing_or_hanging_command_does_not_fail_the_run() {
    for (script, words) in [
        ("echo no such room >&2; exit 3", "no such room"),
        ("sleep 100 & sleep 100", "no end after 10 seconds"),
    ] {
        let project = Project::new().script(&[finish()]);
        with_command(&project, script);
        let started = Instant::now();
        project.run().expect(0);
        assert!(started.elapsed() < Duration::from_secs(40), "{script}");
        let log = fs::read_to_string(project.home().join("log/ralph.log")).unwrap();
        assert!(log.contains("a notification failed"), "{log}");
        assert!(log.contains(words), "{log}");
    }
    let project = Project::new().script(&[finish()]);
    project.configure(
        "config.toml",
        "[notify]\ncommand = [\"/no/such/program\"]\n",
    );
    project.run().expect(0);
    let log = fs::read_to_string(project.home().join("log/ralph.log")).unwrap();
    assert!(log.contains("cannot start `/no/such/program`"), "{log}");
}

/// Answers one request and returns its head and body.
fn server(status: &'static str) -> (String, JoinHandle<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook?token=t", listener.local_addr().unwrap());
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while reader.read_line(&mut head).unwrap() > 2 {}
        let length = head
            .lines()
            .find_map(|line| parse_value(line.to_lowercase().strip_prefix("content-length: ")?))
            .unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(response.as_bytes()).unwrap();
        (head, String::from_utf8(body).unwrap())
    });
    (address, thread)
}

#[test]
fn a_webhook_gets_the_result() {
    for (status, words) in [
        ("204 No Content", "a notification was sent"),
        ("500 Broken", "the server responded with 500"),
    ] {
        let (address, thread) = server(status);
        let project = Project::new().script(&[finish()]);
        project.configure(
            "config.toml",
            &format!("[notify]\nwebhook = \"{address}\"\n"),
        );
        project.run().expect(0);
        let (head, body) = thread.join().unwrap();
        assert!(head.starts_with("POST /hook?token=t HTTP/1.1"), "{head}");
        let json: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(json["event"], "finished");
        assert_eq!(json["status"], "succeeded");
        let log = fs::read_to_string(project.home().join("log/ralph.log")).unwrap();
        assert!(log.contains(words), "{log}");
    }
}

#[test]
fn a_repository_cannot_notify() {
    let project = Project::new().script(&[finish()]);
    fs::write(
        project.repo().join("ralph.toml"),
        "[notify]\ncommand = [\"touch\", \"owned\"]\n",
    )
    .unwrap();
    let ended = project.run().expect(2);
    assert!(
        ended
            .stderr
            .contains("ralph.toml may not set `notify.command`"),
        "{}",
        ended.stderr
    );
    assert!(!project.repo().join("owned").exists());
}

//! Before work continues in a sandbox, the run checks its isolation from inside.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ralph_guest::best_effort;
use ralph_test::{BASE_IMAGE, skip_without_docker};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::project::{LiveRun, Project, actions, finish, run};

/// A project in containers; its Docker objects are removed on drop.
struct IsolationCheckProject(Project);

impl IsolationCheckProject {
    fn new(image: &str, replies: &[Value]) -> Self {
        let project = Project::new()
            .set("sandbox_provider", "docker")
            .set("sandbox_image", image)
            .script(replies);
        Self(project)
    }
}

impl Drop for IsolationCheckProject {
    fn drop(&mut self) {
        self.0.remove_docker_objects();
    }
}

/// Returns the results of all isolation checks.
fn isolation_checks(project: &Project) -> Vec<Value> {
    project.event_values("sandbox_checked", "seen")
}

fn good() -> Value {
    json!([
        "the gate answers",
        "`https://google.com` is blocked",
        "`1.1.1.1:443` cannot be reached",
    ])
}

/// Returns a command that requests a host through the gate, and prints the response.
fn asking(host: &str) -> Value {
    let program = format!(
        "import socket; s = socket.create_connection((\"127.0.0.1\", 3128)); \
         s.sendall(b\"CONNECT {host}:443 HTTP/1.1\\r\\nHost: {host}:443\\r\\n\\r\\n\"); print(s.recv(64))"
    );
    run(&format!("python3 -c '{program}'"))
}

#[test]
fn isolation_is_reported_once_and_only_other_hosts_as_blocked() {
    if skip_without_docker() {
        return;
    }
    let asked = actions(&[asking("google.com")]);
    let contained = IsolationCheckProject::new(BASE_IMAGE, &[asked, finish()]);
    let project = &contained.0;
    let ended = project.run().expect(0);
    assert_eq!(isolation_checks(project), [good()]);
    assert!(
        ended
            .stdout
            .contains("checked from inside the sandbox: the gate answers, ")
    );
    let journal = project.journal();
    let place = |kind: &str| journal.iter().position(|event| event["type"] == kind);
    assert!(place("sandbox_checked") < place("iteration_started"));
    // The isolation check contacted the same host, but is not reported.
    assert_eq!(project.event_values("host_blocked", "host"), ["google.com"]);
    assert!(place("iteration_started") < place("host_blocked"));
    let answers = project.artifact(1, "test_output.txt");
    assert!(answers.contains("HTTP/1.1 403"), "{answers}");
    project.audit();
}

/// Sends a command and waits for the run's status.
fn steer(project: &Project, live: &LiveRun<'_>, command: &str, status: &str) {
    project.ralph(&[command, "last"]).expect(0);
    live.wait_for_status(status);
}

#[test]
fn resuming_repeats_the_isolation_check() {
    if skip_without_docker() {
        return;
    }
    let wait = |name: &str| {
        actions(&[run(&format!(
            "test -e {name} || {{ touch {name}; sleep 60; }}"
        ))])
    };
    let short = actions(&[run("sleep 1"), run("sleep 1"), run("sleep 1")]);
    let contained = IsolationCheckProject::new(BASE_IMAGE, &[short, wait("first"), finish()]);
    let project = &contained.0;
    let live = project.start();
    live.wait_for_event("action_started", 1);
    steer(project, &live, "pause", "paused");
    assert_eq!(isolation_checks(project).len(), 1);
    steer(project, &live, "resume", "running");
    live.wait_for_event("sandbox_checked", 2);
    live.wait_for_event("iteration_started", 2);
    live.wait_until("the second iteration works", |journal| {
        let is_action = |event: &&Value| event["type"] == "action_started";
        let last = journal.iter().rfind(is_action);
        last.is_some_and(|event| event["iteration"] == 2)
    });
    live.signal(Signal::INT);
    live.wait().expect(130);
    // No check between iterations.
    assert_eq!(isolation_checks(project).len(), 2);
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(isolation_checks(project), [good(), good(), good()]);
    assert_eq!(project.show()["status"], "succeeded");
}

/// A test image, removed on drop.
struct CurlImage(String);

impl CurlImage {
    /// Builds an image with a `curl` whose output depends on the URL's suffix.
    fn with_curl(name: &str, cases: &str) -> Self {
        let tag = format!("ralph-test-{name}:{}", std::process::id());
        let script = format!("#!/bin/sh\\nfor url; do :; done\\ncase $url in {cases} esac\\n");
        let recipe = format!(
            "FROM {BASE_IMAGE}\nUSER root\nRUN printf '%b' '{script}' >/usr/local/bin/curl && chmod 755 /usr/local/bin/curl\nUSER agent\n"
        );
        let mut build = Command::new("docker")
            .args(["build", "--quiet", "--tag", &tag, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = build.stdin.take();
        input.unwrap().write_all(recipe.as_bytes()).unwrap();
        let done = build.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        Self(tag)
    }
}

impl Drop for CurlImage {
    fn drop(&mut self) {
        let remove = ["image", "rm", "--force", &self.0];
        best_effort(Command::new("docker").args(remove).output());
    }
}

#[test]
fn curl_from_the_image_cannot_influence_the_isolation_check() {
    if skip_without_docker() {
        return;
    }
    // One reports a leak, one crashes: the guest runs its own probes.
    for (name, cases) in [
        (
            "leak",
            "*/health) printf 000;; *google.com/) printf 301;; *) printf 0.012345;;",
        ),
        ("broken", "*) kill -9 $$;;"),
    ] {
        let image = CurlImage::with_curl(name, cases);
        let contained = IsolationCheckProject::new(&image.0, &[finish()]);
        contained.0.run().expect(0);
        assert_eq!(isolation_checks(&contained.0), [good()], "{name}");
    }
}

//! Before work goes on in a sandbox, the run looks from inside whether its walls stand.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ralph_test::{BASE_IMAGE, left_out_without_docker};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::project::{Live, Project, actions, finish, run};

/// A project in containers; what it leaves on the engine is removed with it.
struct Contained(Project);

impl Contained {
    fn new(image: &str, replies: &[Value]) -> Self {
        let project = Project::new()
            .set("sandbox_provider", "docker")
            .set("sandbox_image", image)
            .script(replies);
        Self(project)
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        self.0.clear_engine();
    }
}

/// Returns what each look has seen.
fn looks(project: &Project) -> Vec<Value> {
    project.told("sandbox_checked", "seen")
}

fn good() -> Value {
    json!([
        "the gate answers",
        "`https://google.com` is blocked",
        "`1.1.1.1:443` cannot be reached",
    ])
}

/// Returns a command that asks the gate for a host, and prints what it answers.
fn asking(host: &str) -> Value {
    let program = format!(
        "import socket; s = socket.create_connection((\"127.0.0.1\", 3128)); \
         s.sendall(b\"CONNECT {host}:443 HTTP/1.1\\r\\nHost: {host}:443\\r\\n\\r\\n\"); print(s.recv(64))"
    );
    run(&format!("python3 -c '{program}'"))
}

#[test]
fn walls_that_stand_are_told_once_and_only_others_are_told_as_blocked() {
    if left_out_without_docker() {
        return;
    }
    let asked = actions(&[asking("google.com")]);
    let contained = Contained::new(BASE_IMAGE, &[asked, finish()]);
    let project = &contained.0;
    let ended = project.run().expect(0);
    assert_eq!(looks(project), [good()]);
    assert!(
        ended
            .stdout
            .contains("seen from inside: the gate answers, ")
    );
    let journal = project.journal();
    let place = |kind: &str| journal.iter().position(|event| event["type"] == kind);
    assert!(place("sandbox_checked") < place("iteration_started"));
    // The look wanted to reach the same host, and nobody has to know.
    assert_eq!(project.told("host_blocked", "host"), ["google.com"]);
    assert!(place("iteration_started") < place("host_blocked"));
    let answers = project.artifact(1, "test_output.txt");
    assert!(answers.contains("HTTP/1.1 403"), "{answers}");
    project.audit();
}

/// Sends a command and waits until the run says where it stands.
fn steer(project: &Project, live: &Live<'_>, command: &str, status: &str) {
    project.ralph(&[command, "last"]).expect(0);
    live.until_status(status);
}

#[test]
fn whoever_goes_on_looks_again() {
    if left_out_without_docker() {
        return;
    }
    let wait = |name: &str| {
        actions(&[run(&format!(
            "test -e {name} || {{ touch {name}; sleep 60; }}"
        ))])
    };
    let short = actions(&[run("sleep 1"), run("sleep 1"), run("sleep 1")]);
    let contained = Contained::new(BASE_IMAGE, &[short, wait("first"), finish()]);
    let project = &contained.0;
    let live = project.start();
    live.until_event("action_started", 1);
    steer(project, &live, "pause", "paused");
    assert_eq!(looks(project).len(), 1);
    steer(project, &live, "resume", "running");
    live.until_event("sandbox_checked", 2);
    live.until_event("iteration_started", 2);
    live.until("the second iteration works", |journal| {
        let is_action = |event: &&Value| event["type"] == "action_started";
        let last = journal.iter().rfind(is_action);
        last.is_some_and(|event| event["iteration"] == 2)
    });
    live.signal(Signal::INT);
    live.end().expect(130);
    // Between iterations nobody has looked.
    assert_eq!(looks(project).len(), 2);
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(looks(project), [good(), good(), good()]);
    assert_eq!(project.show()["status"], "succeeded");
}

/// An image of a test, which is removed with it.
struct Image(String);

impl Image {
    /// Makes one whose `curl` answers as it is told, by the end of the address that is asked for.
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

impl Drop for Image {
    fn drop(&mut self) {
        let remove = ["image", "rm", "--force", &self.0];
        Command::new("docker").args(remove).output().ok();
    }
}

#[test]
fn a_curl_of_the_image_has_no_say_in_whether_walls_stand() {
    if left_out_without_docker() {
        return;
    }
    // One that claims a hole, and one that breaks down: the guest probes by itself.
    for (name, cases) in [
        (
            "leak",
            "*/health) printf 000;; *google.com/) printf 301;; *) printf 0.012345;;",
        ),
        ("broken", "*) kill -9 $$;;"),
    ] {
        let image = Image::with_curl(name, cases);
        let contained = Contained::new(&image.0, &[finish()]);
        contained.0.run().expect(0);
        assert_eq!(looks(&contained.0), [good()], "{name}");
    }
}

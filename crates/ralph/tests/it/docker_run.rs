//! Complete runs in Docker sandboxes: the same results as elsewhere, and containers that stop
//! midway.

use std::process::Command;

use ralph_test::{BASE_IMAGE, skip_without_docker};
use serde_json::Value;

use crate::project::{Project, actions, claiming, commit, finish, run, work, write};

/// A project whose task runs in Docker; its Docker objects are removed on drop.
struct DockerProject {
    project: Project,
}

impl DockerProject {
    fn new(replies: &[Value]) -> Self {
        let project = Project::new()
            .set("sandbox_provider", "docker")
            .set("sandbox_image", BASE_IMAGE)
            .script(replies);
        Self { project }
    }

    fn containers(&self) -> Vec<String> {
        self.project.docker_objects(&["ps", "--all"])
    }

    fn docker(&self, arguments: &[&str]) {
        let container = self.containers().pop().expect("a container");
        let done = Command::new("docker")
            .args(arguments)
            .arg(container)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// Returns whether the container has a process with this command line.
    fn runs(&self, line: &str) -> bool {
        let container = self.containers().pop().expect("a container");
        let listed = Command::new("docker").args(["top", &container]).output();
        String::from_utf8_lossy(&listed.unwrap().stdout).contains(line)
    }

    /// Asserts that the run succeeded normally and left nothing behind.
    fn assert_delivered(&self) {
        assert_eq!(self.project.show()["status"], "succeeded");
        assert_eq!(self.project.show()["sandbox"], "docker");
        self.project.audit();
        let left = (
            self.containers(),
            self.project.docker_objects(&["volume", "ls"]),
        );
        assert_eq!(left, (vec![], vec![]), "something is left on the engine");
    }
}

impl Drop for DockerProject {
    fn drop(&mut self) {
        self.project.remove_docker_objects();
    }
}

/// A reply whose command waits long enough to be interrupted, once.
fn waiting() -> Value {
    actions(&[
        write("kept.txt", "not committed\n"),
        run("test -e waited && exit 0; touch waited; sleep 600"),
    ])
}

#[test]
fn a_task_is_done_in_containers_without_a_network() {
    if skip_without_docker() {
        return;
    }
    let look = "id -u; ls /sys/class/net; cat /proc/net/route | wc -l; touch /etc/x; echo $?";
    let contained =
        DockerProject::new(&[actions(&[run(look)]), claiming(&["M1.1", "M1.2"], &work())]);
    contained.project.run().expect(0);
    let output = contained.project.artifact(1, "test_output.txt");
    assert!(!output.contains("\n0\n"), "{output}");
    assert!(output.contains("\nlo\n1\n"), "{output}");
    assert!(output.contains("Read-only file system"), "{output}");
    let rooms = contained.project.event_values("sandbox_created", "purpose");
    // Two boxes and the test command.
    assert_eq!(rooms, ["work", "clean_room", "clean_room", "clean_room"]);
    contained.assert_delivered();
}

#[test]
fn a_container_that_is_killed_interrupts_a_command_and_not_the_run() {
    if skip_without_docker() {
        return;
    }
    let contained = DockerProject::new(&[waiting(), finish()]);
    let live = contained.project.start();
    live.wait_for_event("action_started", 2);
    live.wait_until("the command sleeps", |_| contained.runs("sleep 600"));
    contained.docker(&["kill"]);
    live.wait().expect(0);
    assert_eq!(contained.project.results(1), ["done", "failed"]);
    let why = contained.project.event_values("action_finished", "why")[1].to_string();
    assert!(why.contains("killed from outside"), "{why}");
    contained.assert_delivered();
}

#[test]
fn a_removed_container_pauses_the_run_and_resuming_keeps_the_files() {
    if skip_without_docker() {
        return;
    }
    let keep = actions(&[run("cat kept.txt"), commit("Keep it")]);
    let contained = DockerProject::new(&[waiting(), keep, finish()]);
    let live = contained.project.start();
    live.wait_for_event("action_started", 2);
    live.wait_until("the command sleeps", |_| contained.runs("sleep 600"));
    contained.docker(&["rm", "--force"]);
    let paused = live.wait().expect(11);
    assert!(
        paused.combined().contains("ralph resume"),
        "{}",
        paused.combined()
    );
    contained.project.ralph(&["resume", "last"]).expect(0);
    let outputs = contained.project.artifact(2, "test_output.txt");
    assert!(outputs.contains("not committed"), "{outputs}");
    contained.assert_delivered();
}

#[test]
fn a_blocked_host_is_reported_with_its_command() {
    if skip_without_docker() {
        return;
    }
    let ask =
        "python3 -c 'import urllib.request as u; u.urlopen(\"http://wanted.example/\")'; true";
    let contained =
        DockerProject::new(&[actions(&[run(ask)]), claiming(&["M1.1", "M1.2"], &work())]);
    contained.project.commit(
        "package-lock.json",
        r#"{"packages": {"a": {"resolved": "https://files.wanted.example/a.tgz"}}}"#,
    );
    let ended = contained.project.run().expect(0);
    let blocked = contained.project.events("host_blocked");
    assert_eq!(blocked.len(), 1, "{blocked:?}");
    assert_eq!(blocked[0]["host"], "wanted.example");
    assert_eq!(blocked[0]["command"], ask);
    let suggested = "files.wanted.example · named by package-lock.json";
    assert!(ended.stdout.contains(suggested), "{}", ended.stdout);
    let decisions =
        std::fs::read_to_string(contained.project.run_dir().join("egress.jsonl")).unwrap();
    assert!(
        decisions.contains(r#""host":"wanted.example""#),
        "{decisions}"
    );
    contained.assert_delivered();
}

#[test]
fn the_plan_reports_ineffective_host_rules() {
    if skip_without_docker() {
        return;
    }
    let contained = DockerProject::new(&[finish()]);
    let project = &contained.project;
    let note =
        "note: `allowed` has no effect with the policy `deny`: set `policy = \"allowlist\"`\n";
    for (policy, is_told) in [("", true), ("policy = \"allowlist\"\n", false)] {
        let settings = format!("[sandbox.network]\n{policy}allowed = [\"a.example\"]\n");
        project.configure("ralph.toml", &settings);
        let plan = project.run_with(&["--dry-run"]).expect(0);
        assert_eq!(plan.stdout.contains(note), is_told, "{}", plan.stdout);
    }
    let settings = "[sandbox.network]\nallowed = [\"https://a.example\"]\n";
    project.configure("ralph.toml", settings);
    let refused = project.run_with(&["--dry-run"]).expect(2);
    assert_eq!(
        refused.stderr,
        "ralph: cannot configure the network of the sandbox — `https://a.example` is a URL: write only its \
         host, as `example.com` or `example.com:8443` — correct `allowed` below `[sandbox.network]`\n"
    );
}

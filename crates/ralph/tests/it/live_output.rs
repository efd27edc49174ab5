//! The output of a running command, as other processes see it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use ralph_guest::available;
use ralph_test::{BASE_IMAGE, skip_without_docker};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::project::{LiveRun, Project, actions, claiming, run, work};

/// Longer than anything takes on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
/// Prints a line per 0.2 s for 5 s.
const COUNT: &str = "for n in $(seq 1 25); do echo line $n; sleep 0.2; done";

/// A process that follows a run; its output is read while it works.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(project: &Project, args: &[&str]) -> Self {
        let mut child = project
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for a line that contains a text, and returns it.
    #[track_caller]
    fn wait_for(&self, text: &str) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(WAIT_TIMEOUT)
                .unwrap_or_else(|error| panic!("no line with `{text}`: {error}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Waits for the end; returns the exit code and the rest of both streams.
    fn finish(self) -> (i32, String) {
        let mut rest: String = self.lines.iter().map(|line| line + "\n").collect();
        let output = self.child.wait_with_output().unwrap();
        rest.push_str(&String::from_utf8_lossy(&output.stderr));
        (output.status.code().unwrap_or(-1), rest)
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }
}

fn is_finished(project: &Project, kind: &str) -> bool {
    !project.events(kind).is_empty()
}

/// Asserts that both followers show a command's output while it runs, and that detaching leaves the run alone.
fn assert_followed(project: &Project) {
    let live = project.start();
    live.wait_for_event("action_started", 1);
    let logs = Follower::start(project, &["logs", "-f"]);
    let attached = Follower::start(project, &["attach"]);
    attached.wait_for("Ctrl-C detaches and leaves the run alone");
    for follower in [&logs, &attached] {
        assert_eq!(follower.wait_for("    $ "), format!("    $ {COUNT}"));
        assert_eq!(follower.wait_for("line 1"), "    | line 1");
    }
    assert!(
        !is_finished(project, "action_finished"),
        "the output came only after the command"
    );
    attached.interrupt();
    let (code, rest) = attached.finish();
    assert_eq!(code, 0, "{rest}");
    let run = project.run_dir();
    let run = run.file_name().unwrap().to_str().unwrap();
    let words = format!("detached: run `{run}` continues; `ralph stop {run}` ends it\n");
    assert!(rest.ends_with(&words), "{rest}");
    assert_eq!(project.events("command_received"), Vec::<Value>::new());
    live.wait().expect(0);
    let (code, rest) = logs.finish();
    assert_eq!(code, 0, "{rest}");
    assert!(rest.contains("    | line 25\n"), "{rest}");
    assert!(rest.contains("iteration 1 ends"), "{rest}");
    assert_eq!(project.results(1), ["ran 0", "done", "done", "done"]);
    assert!(!project.run_dir().join("iterations/1/output.log").exists());
    project.audit();
}

fn counting() -> Vec<Value> {
    let deeds = [&[run(COUNT)], work().as_slice()].concat();
    vec![claiming(&["M1.1", "M1.2"], &deeds)]
}

#[test]
fn output_of_a_running_command_is_followed() {
    let project = Project::new().set("sandbox_provider", "local");
    assert_followed(&project.script(&counting()));
}

#[test]
fn output_of_a_container_is_followed() {
    if skip_without_docker() {
        return;
    }
    let project = Project::new()
        .set("sandbox_provider", "docker")
        .set("sandbox_image", BASE_IMAGE)
        .script(&counting());
    let project = DockerObjects(project);
    assert_followed(&project.0);
}

/// A project whose objects on the Docker Engine are removed with it.
struct DockerObjects(Project);

impl Drop for DockerObjects {
    fn drop(&mut self) {
        self.0.remove_docker_objects();
    }
}

fn waiting_for(file: &str, prints: &str) -> Value {
    actions(&[run(&format!(
        "{prints}; until test -e {file}; do sleep 0.05; done"
    ))])
}

/// Lets the command of [`waiting_for`] end.
fn release(project: &Project, file: &str) {
    std::fs::write(project.sandbox().join(file), "").unwrap();
}

#[test]
fn a_secret_is_masked_in_live_output() {
    let canary = "Canary7x".repeat(5);
    let (head, tail) = canary.split_at(17);
    // The value is whole only in the output, in two writes.
    let prints = format!("printf 'key %s' {head}; sleep 0.3; echo {tail}; echo printed");
    let project = Project::new()
        .set("sandbox_provider", "local")
        .env("ZAI_API_KEY", &canary)
        .script(&[
            waiting_for("go", &prints),
            claiming(&["M1.1", "M1.2"], &work()),
        ]);
    let live = project.start();
    live.wait_for_event("action_started", 1);
    let attached = Follower::start(&project, &["attach", "--json"]);
    let json = attached.wait_for("REDACTED");
    let shown: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(shown["live_output"], "key [REDACTED:ZAI_API_KEY]");
    attached.wait_for("\"printed\"");
    let text = std::fs::read_to_string(project.run_dir().join("iterations/1.open/output.log"));
    let text = text.unwrap();
    assert!(!text.contains(&canary), "{text}");
    assert!(text.contains("  key [REDACTED:ZAI_API_KEY]\n"), "{text}");
    release(&project, "go");
    live.wait().expect(0);
    let (code, rest) = attached.finish();
    assert_eq!(code, 0, "{rest}");
    for text in rest.lines() {
        let value: Value = serde_json::from_str(text).unwrap();
        assert!(value["seq"].is_u64() || value["live_output"].is_string());
    }
}

/// Kills the process that works on a run, as a crash would.
fn crash(live: LiveRun<'_>) {
    live.signal(Signal::KILL);
    live.wait();
}

#[test]
fn live_output_survives_a_crash_and_is_continued() {
    let project = Project::new().set("sandbox_provider", "local").script(&[
        waiting_for("go", "echo begun"),
        claiming(&["M1.1", "M1.2"], &work()),
    ]);
    let live = project.start();
    let log = || {
        let path = project.run_dir().join("iterations/1.open/output.log");
        // The file exists only while a command runs.
        available(std::fs::read_to_string(path)).unwrap_or_default()
    };
    // The line of the command also contains the word.
    live.wait_until("it prints", |_| log().contains("\n  begun"));
    let first = log();
    crash(live);
    assert_eq!(log(), first);
    let left = Follower::start(&project, &["attach"]);
    let (code, rest) = left.finish();
    assert_eq!(code, 1, "{rest}");
    assert!(rest.contains("    | begun\n"), "{rest}");
    assert!(rest.contains("no process works on run"), "{rest}");
    let live = project.resume();
    live.wait_until("it prints again", |_| log().len() > first.len());
    assert!(log().starts_with(&first), "{}", log());
    live.wait_until("it prints again", |_| log() == first.repeat(2));
    release(&project, "go");
    live.wait().expect(0);
    project.audit();
}

#[test]
fn attaching_to_an_ended_run_shows_its_end() {
    let project = Project::new()
        .set("sandbox_provider", "local")
        .script(&[claiming(&["M1.1", "M1.2"], &work())]);
    project.run().expect(0);
    let ended = project.ralph(&["attach"]).expect(0);
    assert!(
        ended.stdout.ends_with("has ended: succeeded\n"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("iteration 1"), "{}", ended.stdout);
    let project = Project::new()
        .set("sandbox_provider", "local")
        .set("max_iterations", "1")
        .script(&[actions(&[run("true")])]);
    project.run().expect(10);
    project.ralph(&["attach", "last", "--json"]).expect(10);
}

#[test]
fn the_lines_of_an_agent_are_followed() {
    let project = Project::new();
    let script = "cat >/dev/null; echo I begin; until test -e go; do sleep 0.05; done; rm go; \
        echo one >a.txt; echo two >b.txt; git add a.txt b.txt; \
        git -c user.name=a -c user.email=a@localhost commit --quiet --message work; \
        sed -i 's/- \\[ \\]/- [x]/' ralph_task.md";
    project.commit(".agent-loop/agent", script);
    let live = project.spawn(&["run", "--agent", "command", "--sandbox", "local"]);
    live.wait_for_event("agent_started", 1);
    let logs = Follower::start(&project, &["logs", "-f", "last"]);
    logs.wait_for("    > command");
    logs.wait_for("    | I begin");
    assert!(!is_finished(&project, "agent_finished"));
    let attached = Follower::start(&project, &["attach"]);
    attached.wait_for("I begin");
    release(&project, "go");
    live.wait().expect(0);
    assert_eq!(logs.finish().0, 0);
    let (code, rest) = attached.finish();
    // The record of the event shows it; the live output does not repeat it.
    assert_eq!((code, rest.contains("| I begin")), (0, false), "{rest}");
    project.audit();
}

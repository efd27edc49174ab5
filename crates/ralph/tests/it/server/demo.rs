//! Tests of `ralph demo` with its dashboard: a run of each kind, and the way out of each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::fixture::RunningServer;
use crate::project::Project;
use crate::support::{RalphOutput, TestRalph};

/// Longer than the demo takes on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);

/// The files of a demo, which `ralph` commands use as their state directory.
struct DemoFiles {
    ralph: TestRalph,
    dir: PathBuf,
}

impl DemoFiles {
    fn new() -> Self {
        let ralph = TestRalph::new();
        let dir = ralph.project().join("demo");
        Self { ralph, dir }
    }

    /// Returns the command `demo` in the directory.
    fn demo(&self, flag: &str) -> Command {
        let dir = self.dir.to_str().unwrap();
        self.ralph.command(&["demo", flag, "--dir", dir])
    }

    /// Runs a command with the state directory of the demo.
    fn run(&self, args: &[&str]) -> RalphOutput {
        let mut command = self.ralph.command(args);
        command.env("RALPH_HOME", self.dir.join("state"));
        command.output().unwrap().into()
    }

    fn show(&self, task: &str) -> Value {
        let shown = self.run(&["show", task, "--json"]);
        serde_json::from_str(&shown.stdout).unwrap_or_else(|_| json!({"error": shown.stderr}))
    }

    /// Waits until the run of a task is in a state.
    fn wait_for(&self, task: &str, is_there: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let shown = self.show(task);
            if is_there(&shown) {
                return shown;
            }
            assert!(start.elapsed() < WAIT_TIMEOUT, "{task}: {shown}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Returns the number of ticked boxes.
fn ticked(shown: &Value) -> usize {
    let boxes = shown["boxes"].as_array();
    boxes.map_or(0, |boxes| {
        boxes.iter().filter(|item| item["ticked"] == true).count()
    })
}

#[test]
fn the_demo_serves_a_run_of_each_kind_and_each_has_a_way_out() {
    let demo = DemoFiles::new();
    let server = RunningServer::start_at(demo.demo("--serve"), "dashboard: ");
    let path = server.first_line.split_once(&server.host()).unwrap().1;
    assert_eq!(server.request("GET", path, &[]).status, 303);

    assert_eq!(demo.show("demo")["status"], "succeeded");
    let asking = demo.wait_for("todo", |shown| shown["status"] == "paused");
    let reason = asking["reason"].as_str().unwrap();
    assert!(
        reason.contains("one array, or one JSON object per line?"),
        "{asking}"
    );
    let circling = demo.wait_for("dates", |shown| shown["status"] == "paused");
    let reason = circling["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("circling for 3 consecutive iterations"),
        "{circling}"
    );
    assert_eq!(circling["loop_score"], 1.0, "{circling}");
    let running = demo.wait_for("units", |shown| ticked(shown) > 0);
    assert_eq!(running["status"], "running");

    let ended = server.end_with(Signal::INT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("units  works for some minutes\n"));
    assert_eq!(demo.show("units")["status"], "paused");

    let answered = demo.run(&["answer", "todo", "One object per line"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let applied = demo.run(&["diagnose", "dates", "--apply"]);
    assert_eq!(applied.code, 0, "{applied:?}");
    let resumed = demo.run(&["resume", "dates"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    for task in ["demo", "todo", "dates", "units"] {
        let audited = demo.run(&["audit", task]);
        assert_eq!(audited.code, 0, "{audited:?}");
    }
    // Nothing is in the state directory of the user.
    let user_runs = demo.ralph.run(&["runs"]);
    assert_eq!(user_runs.stdout, "no runs yet; `ralph run` starts one\n");
}

#[test]
fn a_demo_in_a_script_ends_by_itself() {
    for flag in ["--no-serve", "--verbose"] {
        let demo = DemoFiles::new();
        let ended = RalphOutput::from(demo.demo(flag).output().unwrap());
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(!ended.stdout.contains("dashboard:"), "{ended:?}");
        let more = if ralph_server::has_dashboard() {
            "`ralph demo --serve` also shows this run and three others in a browser.\n"
        } else {
            "This build has no dashboard: it was made without Node 20 or newer.\n"
        };
        assert!(ended.stdout.ends_with(more), "{}", ended.stdout);
        assert_eq!(demo.show("last")["status"], "succeeded");
        let repeated = RalphOutput::from(demo.demo(flag).output().unwrap());
        assert_eq!(repeated.code, 2, "{repeated:?}");
        assert!(repeated.stderr.contains("the directory is not empty"));
    }
}

/// The running run of the demo takes some minutes; without its delays, it is a usual one.
#[test]
fn the_longest_run_of_the_demo_succeeds() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/units");
    let read = |name: &str| std::fs::read_to_string(files.join(name)).unwrap();
    let project = Project::new();
    for name in ["convert.sh", "tests/run.sh", "tests/round_trips.sh"] {
        project.commit(name, &read(name).replace("sleep 1", ":"));
    }
    std::fs::write(project.task(), read("ralph_task.md")).unwrap();
    let replies = read("replies.jsonl");
    let lines = replies.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["delay_ms"] = json!(0);
        line
    });
    project.write_script(&lines.collect::<Vec<Value>>());
    project.run().expect(0);
    let shown = project.show();
    assert_eq!(shown["verified"]["green"], true, "{shown}");
    // One formula is wrong at first, so two iterations end without a box besides the first.
    assert_eq!(shown["iteration"], 13, "{shown}");
    project.audit();
}

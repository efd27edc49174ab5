//! A project with a task and a scripted model, and an inventory of the results of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ralph_engine::store::RunDir;
use ralph_test::create_repository;
use serde_json::Value;

use crate::script::{self, GREET, TASK, TEST};
use crate::support::{RalphOutput, TestRalph};

pub(crate) const BRANCH: &str = "ralph/greet/names";

/// A project with its own state directory.
pub(crate) struct CrashStage {
    ralph: TestRalph,
}

/// The results of a run that a crash must not change.
#[derive(Debug, PartialEq)]
pub(crate) struct RunFacts {
    /// The last status in the journal.
    status: String,
    /// Tree and subject of every commit on the branch in the user's repository, newest first.
    commits: Vec<String>,
    /// The iterations that were started, and those that were finished, with their outcomes.
    started: Vec<Value>,
    finished: Vec<(Value, Value)>,
    /// The used lines of the script.
    replies: Vec<Value>,
    /// Every action of `actions.jsonl`: iteration, index, type, result, output.
    actions: Vec<[Value; 5]>,
    /// Number and state of each pull request, and whether its commit is the branch's.
    pulls: Vec<(Value, Value, bool)>,
    /// The files that form the memory of the run.
    memory: Vec<String>,
    /// Changes reported as tampering.
    tampering: Vec<Value>,
    /// Remaining sandboxes.
    sandboxes: Vec<String>,
    /// Processes started in a sandbox that still run.
    processes: Vec<String>,
}

impl RunFacts {
    /// Ignores the numbers of pull requests, which depend on other runs.
    pub(crate) fn with_any_pull_number(mut self) -> Self {
        for (number, _, _) in &mut self.pulls {
            *number = Value::Null;
        }
        self
    }
}

impl CrashStage {
    /// Prepares the project with a model that performs every kind of step and mistake.
    pub(crate) fn new() -> Self {
        Self::with_replies(&script::long_script())
    }

    /// Prepares the project with these lines of a script.
    pub(crate) fn with_replies(replies: &[Value]) -> Self {
        let stage = Self {
            ralph: TestRalph::new(),
        };
        let write = |name: &str, text: &str| {
            fs::write(stage.ralph.project().join(name), text).unwrap();
        };
        write("greet.sh", GREET);
        write("test.sh", TEST);
        create_repository(stage.ralph.project());
        write("ralph_task.md", TASK);
        let lines: Vec<String> = replies.iter().map(|line| format!("{line}\n")).collect();
        write("replies.jsonl", &lines.concat());
        stage
    }

    /// Returns the directories that a run writes to: the state directory and the project.
    pub(crate) fn roots(&self) -> [PathBuf; 2] {
        let home = self.ralph.state().root().to_owned();
        [home, self.ralph.project().canonicalize().unwrap()]
    }

    /// Returns a `ralph` command in the project.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.ralph.command(args)
    }

    /// Returns the command that starts the task.
    pub(crate) fn start(&self) -> Command {
        self.command(&["run", "--model", "scripted:replies.jsonl"])
    }

    /// Returns the command that resumes the run.
    pub(crate) fn resume(&self) -> Command {
        self.command(&["resume", "last"])
    }

    /// Runs ralph to completion.
    pub(crate) fn run(&self, args: &[&str]) -> RalphOutput {
        self.ralph.run(args)
    }

    /// Returns the output of `ralph show --json`; `None` before a run exists.
    pub(crate) fn shown(&self) -> Option<Value> {
        let runs = self.ralph.state().runs().unwrap();
        (!runs.is_empty()).then(|| self.ralph.json(&["show", "last", "--json"]))
    }

    /// Returns the directory of the newest run.
    pub(crate) fn dir(&self) -> RunDir {
        let state = self.ralph.state();
        state.run(&state.find("last").unwrap())
    }

    /// Returns the directory of a run.
    pub(crate) fn run_dir(&self, id: &str) -> RunDir {
        self.ralph.dir(id)
    }

    /// Returns the directory of all sandboxes.
    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.ralph.state().sandboxes()
    }

    /// Returns the events of the newest run.
    pub(crate) fn events(&self) -> Vec<Value> {
        events(&self.dir())
    }

    /// Returns the directory of the work sandbox.
    pub(crate) fn sandbox(&self) -> PathBuf {
        let events = self.events();
        let created = events.iter().rfind(|e| e["type"] == "sandbox_created");
        let id = created.unwrap()["sandbox"].as_str().unwrap();
        self.sandboxes().join(id)
    }

    /// Runs git in the user's repository and returns its output.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        ralph_test::git(self.ralph.project(), args)
    }

    /// Returns tree and subject of every commit on a branch, newest first.
    pub(crate) fn commits(&self, branch: &str) -> Vec<String> {
        let log = self.git(&["log", "--format=%T %s", branch]);
        log.lines().map(str::to_owned).collect()
    }

    /// Returns the processes of this stage's sandboxes, if the system exposes them.
    pub(crate) fn processes(&self) -> Vec<String> {
        let home = self.sandboxes().display().to_string();
        let belongs = |environment: &[u8]| {
            let environment = String::from_utf8_lossy(environment);
            environment.contains("RALPH_SANDBOX=") && environment.contains(&home)
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter(|entry| fs::read(entry.path().join("environ")).is_ok_and(|e| belongs(&e)))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Collects all results.
    pub(crate) fn facts(&self) -> RunFacts {
        self.facts_of(&self.dir(), BRANCH)
    }

    /// Collects all results of a run, with the sandboxes and processes of all runs.
    pub(crate) fn facts_of(&self, dir: &RunDir, branch: &str) -> RunFacts {
        let events = events(dir);
        let of = |kind: &'static str| events.iter().filter(move |e| e["type"] == kind);
        let all = |kind: &'static str, key: &str| of(kind).map(|e| e[key].clone()).collect();
        let text = |path: PathBuf| fs::read_to_string(path).unwrap();
        RunFacts {
            status: of("status_changed")
                .next_back()
                .map_or_else(String::new, |e| e["status"].to_string()),
            commits: self.commits(branch),
            started: all("iteration_started", "iteration"),
            finished: of("iteration_finished")
                .map(|e| (e["iteration"].clone(), e["outcome"].clone()))
                .collect(),
            replies: all("model_replied", "source"),
            actions: of("iteration_finished")
                .flat_map(|e| actions(dir, &e["iteration"]))
                .collect(),
            pulls: self.pulls(branch),
            memory: [
                dir.contract(),
                dir.file("progress.md"),
                dir.file("guardrails.md"),
            ]
            .map(text)
            .into(),
            tampering: all("tamper", "path"),
            sandboxes: names(&self.sandboxes()),
            processes: self.processes(),
        }
    }

    fn pulls(&self, branch: &str) -> Vec<(Value, Value, bool)> {
        let head = self.git(&["rev-parse", branch]);
        let root = self.ralph.state().pulls();
        let shelves = names(&root).into_iter().map(|shelf| root.join(shelf));
        shelves
            .flat_map(|shelf| names(&shelf).into_iter().map(move |name| shelf.join(name)))
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
            .filter(|pull: &Value| pull["head"] == branch)
            .map(|pull| {
                let is_head = pull["commit"] == head.trim();
                (pull["number"].clone(), pull["state"].clone(), is_head)
            })
            .collect()
    }
}

fn events(dir: &RunDir) -> Vec<Value> {
    let text = fs::read_to_string(dir.journal()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take())
        .collect()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn actions(dir: &RunDir, iteration: &Value) -> Vec<[Value; 5]> {
    let number = iteration.as_u64().unwrap().try_into().unwrap();
    let text = fs::read_to_string(dir.iteration(number).join("actions.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| {
            let [index, kind, result, output] =
                ["index", "type", "result", "stdout"].map(|key| line[key].clone());
            [iteration.clone(), index, kind, result, output]
        })
        .collect()
}

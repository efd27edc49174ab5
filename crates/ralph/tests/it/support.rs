//! A separate home and project for every test, and runs in the required state.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use ralph_core::budget::BudgetLimits;
use ralph_core::event::{
    DeliveryEvent, Event, IterationEvent, ModelEvent, RunEvent, VerificationEvent,
};
use ralph_core::id::{CommitId, Digest, RunId, TaskId};
use ralph_core::money::Usd;
use ralph_core::parse_value;
use ralph_core::plan::{Delivery, EngineKind, RunPlan};
use ralph_core::ports::{Isolation, PullRequest, PullState, TokenUsage};
use ralph_core::run::RunStatus;
use ralph_core::secret::Redactor;
use ralph_engine::journal::Journal;
use ralph_engine::store::{RunDir, StateDir};
use ralph_guest::available;
use ralph_test::TestClock;
use tempfile::TempDir;

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RalphOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for RalphOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Returns the number of cases requested by a variable.
pub(crate) fn count_from_env(variable: &str, usual: usize) -> usize {
    let value = std::env::var_os(variable).and_then(|value| available(value.into_string()));
    value.and_then(|text| parse_value(&text)).unwrap_or(usual)
}

/// The program with its own state directory and working directory.
pub(crate) struct TestRalph {
    home: TempDir,
    project: TempDir,
}

impl TestRalph {
    pub(crate) fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            project: tempfile::tempdir().unwrap(),
        }
    }

    /// Returns the working directory.
    pub(crate) fn project(&self) -> &Path {
        self.project.path()
    }

    /// Returns the command, with a clean environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
        command
            .args(args)
            .env_clear()
            .env("RALPH_HOME", self.home.path())
            .env("RALPH_CONFIG_DIR", self.user_config())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.project.path())
            .stdin(Stdio::null());
        command
    }

    /// Returns the directory of the user configuration, which does not exist initially.
    pub(crate) fn user_config(&self) -> PathBuf {
        self.home.path().join("own-config")
    }

    /// Writes a file of the user configuration.
    pub(crate) fn configure(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.user_config()).unwrap();
        std::fs::write(self.user_config().join(name), text).unwrap();
    }

    /// Runs a command to completion.
    pub(crate) fn run(&self, args: &[&str]) -> RalphOutput {
        self.command(args).output().unwrap().into()
    }

    /// Runs a command that must succeed and returns its JSON.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.run(args);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }

    /// Returns the state directory.
    pub(crate) fn state(&self) -> StateDir {
        StateDir::open(self.home.path().to_owned()).unwrap()
    }

    /// Returns the directory of a run.
    pub(crate) fn dir(&self, id: &str) -> RunDir {
        self.state().run(&RunId::parse(id).unwrap())
    }

    /// Creates a run with these events after its creation, and returns it locked.
    pub(crate) fn held_run(&self, id: &str, task: &str, events: Vec<Event>) -> Journal {
        let clock = fixed_clock();
        let dir = self.dir(id);
        let mut journal =
            Journal::create(&dir, plan(id, task), clock, Redactor::default()).unwrap();
        journal.append_all(events).unwrap();
        journal
    }

    /// Creates a run with these events after its creation, without a live process.
    pub(crate) fn create_run(&self, id: &str, task: &str, events: Vec<Event>) {
        drop(self.held_run(id, task, events));
    }
}

/// Returns a clock that always shows the same time.
pub(crate) fn fixed_clock() -> Arc<TestClock> {
    TestClock::at("2026-03-01T10:00:00Z")
}

pub(crate) fn commit(digit: &str) -> CommitId {
    CommitId::parse(&digit.repeat(40)).unwrap()
}

pub(crate) fn status(status: RunStatus) -> Event {
    Event::Run(RunEvent::StatusChanged { status })
}

/// The events of a run during its first iteration.
pub(crate) fn working() -> Vec<Event> {
    vec![
        Event::Run(RunEvent::RunOpened {
            epoch: 1,
            pid: 1,
            ralph: None,
        }),
        status(RunStatus::Preparing),
        status(RunStatus::Running),
        Event::Iteration(IterationEvent::IterationStarted {
            iteration: 1,
            head: commit("a"),
        }),
        Event::Model(ModelEvent::ModelReplied {
            iteration: 1,
            attempt: 1,
            response: Digest::compute(b""),
            usage: TokenUsage {
                input_tokens: 1200,
                output_tokens: 34,
                ..TokenUsage::default()
            },
            cost_usd: Usd::from_dollars(0.25).unwrap(),
            duration_ms: 5,
            source: None,
        }),
    ]
}

/// The events of a run that has succeeded with a pull request.
pub(crate) fn succeeded() -> Vec<Event> {
    let mut events = working();
    events.extend([
        Event::Iteration(IterationEvent::BoxesTicked {
            ticked: vec!["M1.1".into(), "M1.2".into()],
        }),
        Event::Delivery(DeliveryEvent::CommitsImported {
            head: commit("b"),
            commits: 1,
        }),
        Event::Delivery(DeliveryEvent::PullRequestUpdated {
            pull: PullRequest {
                number: 3,
                url: "file:///pulls/3".into(),
                state: PullState::Open,
                head: commit("b"),
            },
            opened: true,
        }),
        status(RunStatus::Verifying),
        Event::Verification(VerificationEvent::VerifyFinished {
            head: commit("b"),
            contract: Digest::compute(b""),
            green: true,
            checks: vec![],
            reasons: vec![],
            findings: vec![],
        }),
        status(RunStatus::Succeeded),
    ]);
    events
}

fn plan(id: &str, task: &str) -> RunPlan {
    RunPlan {
        run: RunId::parse(id).unwrap(),
        task_id: TaskId::parse(task).unwrap(),
        title: "Say hello".into(),
        task_file: "/project/ralph_task.md".into(),
        contract: Digest::compute(b"contract"),
        repo: "/project".into(),
        base_branch: "main".into(),
        base: commit("a"),
        branch: format!("ralph/{task}/say-hello"),
        engine: EngineKind::Actions,
        sandbox: "local".into(),
        isolation: Isolation::None,
        local: None,
        container: None,
        network: None,
        agent: None,
        model: "scripted:replies.jsonl".into(),
        model_key: None,
        scm: "local".into(),
        scm_credential: None,
        submodules: Vec::new(),
        delivery: Delivery::PullRequest,
        issue: None,
        limits: BudgetLimits {
            max_iterations: Some(10),
            ..BudgetLimits::default()
        },
        setup: None,
        test_command: "make test".into(),
        checkboxes: 2,
        mode: ralph_core::task::RunMode::Autonomous,
        settings: None,
    }
}

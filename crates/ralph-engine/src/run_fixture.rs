//! A prepared run with a local sandbox, for the unit tests of its steps.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ralph_core::action::{Action, Claims, Response};
use ralph_core::event::{Event, RunEvent};
use ralph_core::id::RunId;
use ralph_core::outage::OutagePolicy;
use ralph_core::path::WorkspacePath;
use ralph_core::plan::RunPlan;
use ralph_core::ports::{
    Clock, FinishReason, Model, ModelError, ModelReply, ModelRequest, TokenUsage, WriteMode,
};
use ralph_core::price::Price;
use ralph_core::run::RunStatus;
use ralph_core::secret::Redactor;
use ralph_core::task::TaskFile;
use ralph_providers::sandbox::LocalProvider;
use ralph_providers::scm::{GitProgram, LocalScm};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::actions::{Performed, perform};
use crate::contract::{self, PinnedTask};
use crate::controls::{Controls, GateHandle};
use crate::git::HostGit;
use crate::journal::Journal;
use crate::mailbox::Mailbox;
use crate::run::{PreparedRun, ProfileSelector, Run, Services};
use crate::steps::{begin_iteration, load_workspace_view, settle_iteration};
use crate::store::StateDir;

const TASK: &str = "\
---
task_id: task
base_branch: main
test_command: 'test -d .git'
max_iterations: 9
max_cost_usd_estimate: 10
max_wall_time_minutes: 5
verification: {baseline: false}
MORE
---

# Task: Make a file

## Success criteria

### Milestone M1 — Files
- [ ] M1.1 One is there
  - verify: `grep -q one a.txt`
";

/// A run between two iterations.
pub(crate) struct RunFixture {
    pub(crate) run: Run,
    directory: TempDir,
    state_dir: StateDir,
    _interrupt: watch::Sender<bool>,
}

struct FixtureClock(Instant);

impl Clock for FixtureClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A model that gives prepared replies, one after the other.
struct QueuedModel(Mutex<VecDeque<String>>);

#[async_trait]
impl Model for QueuedModel {
    fn name(&self) -> &'static str {
        "queued"
    }

    async fn ask_once(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
        let reply = self.0.lock().unwrap().pop_front();
        Ok(ModelReply {
            text: reply.expect("there is a reply for every question"),
            usage: TokenUsage::default(),
            finish: FinishReason::Complete,
            source: None,
            answered_by: None,
            billed: None,
        })
    }
}

/// Runs git on the host and returns its output.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=u", "-c", "user.email=u@localhost"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn write_action(path: &str, content: &str) -> Action {
    Action::Write {
        path: WorkspacePath::parse(path).unwrap(),
        content: content.into(),
        mode: WriteMode::Replace,
    }
}

pub(crate) fn shell_action(command: &str) -> Action {
    Action::Run {
        command: command.into(),
        cwd: None,
        timeout: Duration::from_mins(1),
    }
}

pub(crate) fn commit_action(message: &str) -> Action {
    Action::Commit {
        message: message.into(),
        paths: Vec::new(),
    }
}

impl RunFixture {
    /// Prepares a run whose task has these additional lines of front matter.
    pub(crate) async fn new(front_matter: &str) -> Self {
        Self::with_replies(front_matter, &[]).await
    }

    /// Prepares a run whose model gives these replies.
    pub(crate) async fn with_replies(front_matter: &str, replies: &[&str]) -> Self {
        Self::with_plan(front_matter, replies, json!({})).await
    }

    /// Prepares a run whose plan also has these fields.
    pub(crate) async fn with_plan(front_matter: &str, replies: &[&str], more: Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let repo = root.join("repo");
        fs::create_dir(&repo).unwrap();
        git(&repo, &["init", "--quiet", "--initial-branch=main"]);
        fs::write(repo.join("base.txt"), "base\n").unwrap();
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "--quiet", "-m", "base"]);
        let file = root.join("ralph_task.md");
        let text = TASK.replace("MORE", front_matter);
        fs::write(&file, &text).unwrap();
        let task = TaskFile::parse(text.as_bytes()).unwrap();
        let state_dir = StateDir::open(root.join("state")).unwrap();
        let id = RunId::new(jiff::Timestamp::UNIX_EPOCH, 1);
        let dir = state_dir.run(&id);
        let mut plan = json!({
            "run": id, "task_id": "task", "title": "Make a file", "task_file": file,
            "contract": contract::digest(&task), "repo": repo, "base_branch": "main",
            "base": git(&repo, &["rev-parse", "HEAD"]), "branch": "ralph/task", "engine": "actions",
            "sandbox": "local", "isolation": "none", "model": "queued", "scm": "local",
            "delivery": "branch", "limits": task.contract.limits(), "test_command": "true",
            "checkboxes": 1, "mode": task.contract.mode,
        });
        for (name, value) in more.as_object().unwrap() {
            plan[name] = value.clone();
        }
        let plan: RunPlan = serde_json::from_value(plan).unwrap();
        dir.create().unwrap();
        PinnedTask::pin(&dir, file, task).unwrap();
        let services = services(&state_dir, &repo, replies);
        let (clock, redactor) = (services.clock.clone(), services.redactor.clone());
        let mut journal = Journal::create(&dir, plan, clock, redactor).unwrap();
        let opened = Event::Run(RunEvent::RunOpened {
            epoch: 1,
            pid: std::process::id(),
            ralph: None,
        });
        journal.append(opened).unwrap();
        let (interrupt, interrupted) = watch::channel(false);
        let mailbox = Mailbox::new(dir.commands());
        let controls = Controls::new(mailbox, interrupted, GateHandle::Missing);
        let preparing = PreparedRun::prepare(dir, &mut journal, services, controls);
        let mut run = Box::pin(preparing).await.unwrap().into_run(journal);
        let loading = load_workspace_view(&mut run.recorder, &mut run.bench, &run.pinned);
        Box::pin(loading).await.unwrap();
        run.recorder.set_status(RunStatus::Running).unwrap();
        Self {
            run,
            directory,
            state_dir,
            _interrupt: interrupt,
        }
    }

    /// Starts an iteration.
    pub(crate) fn begin(&mut self) {
        let run = &mut self.run;
        begin_iteration(&mut run.recorder, &run.services, &mut run.scratch).unwrap();
    }

    /// Performs actions in the open iteration.
    pub(crate) async fn perform(&mut self, actions: Vec<Action>) -> Performed {
        let response = Response {
            summary: "done".into(),
            actions,
            claims: Claims::default(),
            repaired: false,
        };
        Box::pin(perform(&mut self.run, &response)).await.unwrap()
    }

    /// Imports the commits of the open iteration.
    pub(crate) async fn settle(&mut self) {
        let run = &mut self.run;
        let settling = settle_iteration(
            &mut run.recorder,
            &mut run.bench,
            &run.pinned,
            &mut run.scratch,
        );
        Box::pin(settling).await.unwrap();
    }

    /// Returns the user's repository.
    pub(crate) fn user_repo(&self) -> PathBuf {
        self.directory.path().join("repo")
    }

    /// Returns the repository in the sandbox.
    pub(crate) fn workspace(&self) -> PathBuf {
        let id = self.run.bench.sandbox.id().0.clone();
        self.state_dir.sandboxes().join(id).join("repo")
    }

    /// Returns the events of the journal as they are stored.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.run.recorder.dir.journal()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone())
            .collect()
    }

    /// Returns the stored events of these types.
    pub(crate) fn events_of(&self, types: &[&str]) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| types.contains(&event["type"].as_str().unwrap()));
        events
    }

    /// Returns a log or another file of the run.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.run.recorder.dir.file(name)).unwrap()
    }
}

fn services(state_dir: &StateDir, repo: &Path, replies: &[&str]) -> Services {
    let path = "/usr/local/bin:/usr/bin:/bin";
    let program = GitProgram {
        program: PathBuf::from("git"),
        path: path.into(),
        config: "/dev/null".into(),
    };
    let clock: Arc<dyn Clock> = Arc::new(FixtureClock(Instant::now()));
    let scm = LocalScm::new(&state_dir.pulls(), repo, program, clock.clone()).unwrap();
    let config = state_dir.root().join("git/.gitconfig");
    let replies = replies.iter().map(ToString::to_string).collect();
    Services {
        sandboxes: Arc::new(LocalProvider::new(state_dir.sandboxes(), path)),
        model: Arc::new(QueuedModel(Mutex::new(replies))),
        fallback_agent: None,
        agent: None,
        gate: None,
        price: Price::default(),
        outage: OutagePolicy::default(),
        profiles: ProfileSelector {
            doctor: None,
            fallback: None,
            choose: Arc::new(|_| Err("there are no profiles".into())),
        },
        scm: Arc::new(scm),
        git: HostGit::new(path, config, None).unwrap(),
        clock,
        redactor: Redactor::new(Vec::new()),
        worker: None,
    }
}

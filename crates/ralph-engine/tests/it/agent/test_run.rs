//! A repository with a task, and a run of it with its events.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ralph_core::event::{
    AgentSessionEvent, CommandEvent, EgressEvent, Event, IterationEvent, RunEvent,
};
use ralph_core::id::RunId;
use ralph_core::outage::OutagePolicy;
use ralph_core::plan::{NetworkPlan, RunPlan};
use ralph_core::ports::{
    Agent, AgentEvent, Clock, GateControl, Model, ModelError, ModelReply, ModelRequest,
};
use ralph_core::price::Price;
use ralph_core::run::{Command, RunStatus};
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;
use ralph_core::task::TaskFile;
use ralph_engine::contract::{self, PinnedTask};
use ralph_engine::git::HostGit;
use ralph_engine::journal::{self, Journal};
use ralph_engine::mailbox::{CommandFile, Mailbox};
use ralph_engine::run::{ProfileSelector, Services, drive};
use ralph_engine::run_thread::{RunThread, spawn_run};
use ralph_engine::store::{RunDir, StateDir};
use ralph_engine::user_commands::{self, CommandResult};
use ralph_providers::sandbox::LocalProvider;
use ralph_providers::scm::{GitProgram, LocalScm};
use ralph_test::{TestClock, create_repository, git};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::script::{RecordingGate, ScriptedAgent};

const TASK: &str = "\
---
task_id: task
base_branch: main
test_command: 'test -d .git'
max_iterations: 9
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

/// Completes the task, as an agent should.
pub(super) const DO_TASK: &str = "echo one > a.txt && git add a.txt && \
    git -c user.name=a -c user.email=a@localhost commit --quiet -m one && \
    sed 's/- \\[ \\] M1.1/- [x] M1.1/' ralph_task.md > ticked && mv ticked ralph_task.md";

/// The timeout of every wait.
const TEST_TIMEOUT: Duration = Duration::from_mins(5);

/// A run and its environment.
pub(super) struct EngineTestRun {
    directory: TempDir,
    state_dir: StateDir,
    pub(super) dir: RunDir,
    pub(super) gate: Arc<RecordingGate>,
    sent_commands: AtomicU64,
    is_gated: bool,
    outage: OutagePolicy,
}

struct NoModel;

#[async_trait]
impl Model for NoModel {
    fn name(&self) -> &'static str {
        "none"
    }

    async fn ask_once(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
        Err(ModelError::Unauthorized {
            model: "none".into(),
            status: 401,
            message: String::new(),
            key: None,
        })
    }
}

fn search_path() -> String {
    "/usr/local/bin:/usr/bin:/bin".to_owned()
}

impl EngineTestRun {
    /// Creates a new run, with these lines in the task's front matter.
    pub(super) fn new(more: &str) -> Self {
        Self::with_plan(more, None)
    }

    /// Creates a run whose plan restricts the network. It cannot be worked on: no local sandbox
    /// restricts the network of commands.
    pub(super) fn with_network_plan() -> Self {
        Self::with_plan("", Some(&NetworkPlan::default()))
    }

    fn with_plan(more: &str, network: Option<&NetworkPlan>) -> Self {
        let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let place = place.unwrap();
        let repo = place.path().join("repo");
        fs::create_dir(&repo).unwrap();
        fs::write(repo.join("base.txt"), "base\n").unwrap();
        create_repository(&repo);
        let file = place.path().join("ralph_task.md");
        let text = TASK.replace("MORE", more.trim_end());
        fs::write(&file, &text).unwrap();
        let task = TaskFile::parse(text.as_bytes()).unwrap();
        let state = StateDir::open(place.path().join("state")).unwrap();
        let run = RunId::new(jiff::Timestamp::UNIX_EPOCH, 1);
        let dir = state.run(&run);
        let plan: RunPlan = serde_json::from_value(json!({
            "run": run, "task_id": "task", "title": "Make a file", "task_file": file,
            "contract": contract::digest(&task), "repo": repo, "base_branch": "main",
            "base": git(&repo, &["rev-parse", "HEAD"]), "branch": "ralph/task", "engine": "agent",
            "sandbox": "local", "isolation": "container", "network": network, "model": "none", "scm": "local",
            "delivery": "branch", "limits": task.contract.limits(), "test_command": "true",
            "checkboxes": 1, "mode": task.contract.mode,
        }))
        .unwrap();
        dir.create().unwrap();
        PinnedTask::pin(&dir, file, task).unwrap();
        Journal::create(&dir, plan, Self::clock(), Redactor::new(Vec::new())).unwrap();
        Self {
            directory: place,
            state_dir: state,
            dir,
            gate: Arc::default(),
            sent_commands: AtomicU64::new(0),
            is_gated: true,
            outage: OutagePolicy::default(),
        }
    }

    /// Sets how long the run waits for a provider that is not available.
    pub(super) fn with_outage(mut self, outage: OutagePolicy) -> Self {
        self.outage = outage;
        self
    }

    /// Removes the gate.
    pub(super) fn without_gate(mut self) -> Self {
        self.is_gated = false;
        self
    }

    pub(super) fn clock() -> Arc<dyn Clock> {
        TestClock::running()
    }

    fn services(&self, agent: Arc<dyn Agent>) -> Services {
        let path = search_path();
        let program = PathBuf::from("git");
        let host = GitProgram {
            program,
            path: path.clone().into(),
            config: "/dev/null".into(),
        };
        let repo = self.directory.path().join("repo");
        let scm = LocalScm::new(&self.state_dir.pulls(), &repo, host, Self::clock()).unwrap();
        let gate: Arc<dyn GateControl> = self.gate.clone();
        let config = self.state_dir.root().join("git/.gitconfig");
        Services {
            sandboxes: Arc::new(LocalProvider::new(self.state_dir.sandboxes(), &path)),
            model: Arc::new(NoModel),
            fallback_agent: None,
            agent: Some(agent),
            gate: self.is_gated.then_some(gate),
            price: Price::default(),
            outage: self.outage,
            profiles: ProfileSelector {
                doctor: None,
                fallback: None,
                choose: Arc::new(|_| Err("there are no profiles".into())),
            },
            scm: Arc::new(scm),
            git: HostGit::new(&path, config, None).unwrap(),
            clock: Self::clock(),
            redactor: Redactor::new(Vec::new()),
            worker: None,
        }
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.dir, Self::clock(), Redactor::new(Vec::new())).unwrap()
    }

    /// Starts or resumes the work on the run.
    pub(super) fn start(&self, agent: ScriptedAgent) -> RunInProgress {
        let (interrupt, interrupted) = watch::channel(false);
        let outside = self.services(Arc::new(agent));
        let (dir, journal) = (self.dir.clone(), self.journal());
        let work = Box::pin(drive(dir, journal, outside, interrupted));
        let work = async move { work.await.unwrap() };
        RunInProgress {
            work: tokio::spawn(work),
            interrupt,
        }
    }

    /// Drives the run on a thread of its own, with a clock that can block or panic.
    pub(super) fn start_on_thread(
        &self,
        agent: ScriptedAgent,
        clock: Arc<dyn Clock>,
    ) -> (RunThread, watch::Sender<bool>) {
        let (interrupt, interrupted) = watch::channel(false);
        let services = Services {
            clock,
            ..self.services(Arc::new(agent))
        };
        let thread = spawn_run(self.dir.clone(), self.journal(), services, interrupted);
        (thread.unwrap(), interrupt)
    }

    /// Works on the run until the process is done with it.
    pub(super) async fn run_to_end(&self, agent: ScriptedAgent) -> RunStatus {
        self.start(agent).wait().await
    }

    /// Queues a command in the run's mailbox and waits for the response; returns why it was
    /// refused.
    pub(super) async fn send_command(&self, command: Command) -> Option<String> {
        let id = format!("{:04}", self.sent_commands.fetch_add(1, Ordering::SeqCst));
        let mailbox = Mailbox::new(self.dir.commands());
        mailbox.send(&id, command).unwrap();
        let answer = |event: &Event| {
            let Event::Command(CommandEvent::CommandReceived {
                id: of, refused, ..
            }) = event
            else {
                return None;
            };
            (*of == id).then(|| refused.clone())
        };
        self.wait_for(|events| events.iter().find_map(answer)).await
    }

    /// Applies a command to the run while no process works on it.
    pub(super) fn apply_offline(&self, command: Command) -> CommandResult {
        let id = format!("{:04}", self.sent_commands.fetch_add(1, Ordering::SeqCst));
        let file = CommandFile { id, command };
        let (clock, redactor) = (Self::clock(), Redactor::new(Vec::new()));
        let mut journal = self.journal();
        let done =
            user_commands::apply_offline(&self.dir, &mut journal, &file, (&*clock, &redactor));
        done.unwrap().unwrap()
    }

    pub(super) fn events(&self) -> Vec<Event> {
        let records = journal::read(&self.dir.journal()).unwrap();
        records.into_iter().map(|record| record.event).collect()
    }

    pub(super) fn state(&self) -> RunState {
        self.dir.state().unwrap()
    }

    /// Waits until the events satisfy a condition.
    pub(super) async fn wait_for<T>(&self, condition: impl Fn(&[Event]) -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            let events = self.events();
            if let Some(found) = condition(&events) {
                return found;
            }
            assert!(started.elapsed() < TEST_TIMEOUT, "{events:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn wait_for_status(&self, status: &RunStatus) {
        let is_it = |event: &Event| matches!(event, Event::Run(RunEvent::StatusChanged { status: now }) if now == status);
        self.wait_for(|events| events.iter().any(is_it).then_some(()))
            .await;
    }

    /// Returns the directory of all its files.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the repository in the run's sandbox.
    pub(super) fn sandbox(&self) -> PathBuf {
        let id = self.state().sandbox.expect("there is a sandbox");
        self.state_dir.sandboxes().join(&id.0).join("repo")
    }

    /// Waits until the agent has printed a text.
    pub(super) async fn wait_for_text(&self, text: &str) {
        self.wait_for(|events| agent_texts(events).contains(&text.to_owned()).then_some(()))
            .await;
    }

    /// Returns the texts of the agent.
    pub(super) fn agent_texts(&self) -> Vec<String> {
        agent_texts(&self.events())
    }

    /// Returns a line for each event that is relevant to these tests.
    pub(super) fn event_lines(&self) -> Vec<String> {
        self.events().iter().filter_map(event_line).collect()
    }

    /// Returns the prompt of a finished iteration.
    pub(super) fn prompt(&self, iteration: u32) -> String {
        fs::read_to_string(self.dir.iteration(iteration).join("prompt.md")).unwrap()
    }
}

fn agent_texts(events: &[Event]) -> Vec<String> {
    let texts = events.iter().filter_map(|event| {
        let Event::Agent(AgentSessionEvent::AgentDid {
            did: AgentEvent::Text { text },
            ..
        }) = event
        else {
            return None;
        };
        Some(text.clone())
    });
    texts.collect()
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "only a few events are relevant"
)]
fn event_line(event: &Event) -> Option<String> {
    Some(match event {
        Event::Agent(AgentSessionEvent::AgentStarted {
            iteration, attempt, ..
        }) => format!("{iteration}.{attempt} starts"),
        Event::Agent(AgentSessionEvent::AgentFinished {
            iteration,
            attempt,
            end,
            ..
        }) => {
            let end = serde_json::to_value(end).unwrap();
            format!("{iteration}.{attempt} {}", end["end"].as_str().unwrap())
        }
        Event::Iteration(IterationEvent::IterationFinished {
            iteration, outcome, ..
        }) => {
            let outcome = serde_json::to_value(outcome).unwrap();
            format!("{iteration} {}", outcome["outcome"].as_str().unwrap())
        }
        Event::Run(RunEvent::StatusChanged { status }) => status.as_str().to_owned(),
        Event::Command(CommandEvent::MessageMoved { text, to, .. }) => {
            let to = serde_json::to_value(to).unwrap();
            format!("`{text}` {}", to.as_str().unwrap())
        }
        Event::Command(CommandEvent::HostAllowed { host }) => format!("{host} allowed"),
        Event::Egress(EgressEvent::HostBlocked { host, port, .. }) => {
            format!("{host}:{port} blocked")
        }
        Event::Agent(AgentSessionEvent::AgentCharged { cost_usd, .. }) => {
            format!("charged {cost_usd}")
        }
        _ => return None,
    })
}

/// A run in progress.
pub(super) struct RunInProgress {
    work: JoinHandle<RunStatus>,
    interrupt: watch::Sender<bool>,
}

impl RunInProgress {
    /// Waits until the process is done with the run.
    pub(super) async fn wait(self) -> RunStatus {
        let ended = tokio::time::timeout(TEST_TIMEOUT, self.work).await;
        ended.expect("it ends").unwrap()
    }

    /// Interrupts the process, as Ctrl-C does.
    pub(super) async fn interrupt(self) -> RunStatus {
        self.interrupt.send_replace(true);
        self.wait().await
    }
}

//! Runs an agent session the way a run does.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::ports::{
    Agent, AgentEnd, AgentEvent, AgentReader, AgentReport, Exec, ExecStatus, InputSource,
    OutputSink, OutputStream, Sandbox, SandboxProvider, SandboxSpec,
};
use ralph_providers::agent::{Agents, PresetAgentSettings};
use ralph_providers::sandbox::LocalProvider;
use ralph_test::{
    FakeUpstream, RecordedRequest, ScenarioStep, TestClock, UpstreamScenario, agent_program,
};
use tokio::sync::{mpsc, watch};

/// How long a program may run after its last output.
const GRACE: Duration = Duration::from_secs(1);

/// An agent, its sandbox and its upstream.
pub(super) struct AgentWorkFixture {
    agent: Box<dyn Agent>,
    sandbox: Box<dyn Sandbox>,
    upstream: FakeUpstream,
    /// The repository on the host.
    pub(super) repo: PathBuf,
    timeout: Duration,
    steering: Option<String>,
    _root: tempfile::TempDir,
}

/// The outcome of a session.
pub(super) struct AgentTestOutcome {
    pub(super) end: AgentEnd,
    pub(super) report: AgentReport,
    pub(super) events: Vec<AgentEvent>,
    /// The requests to its model.
    pub(super) requests: Vec<RecordedRequest>,
}

/// Returns an agent's placeholder token, the path of its provider's API, and a model that it knows.
fn login_settings(name: &str) -> (&'static str, &'static str, &'static str) {
    if name == "claude" {
        ("sk-ant-oat01-phantom", "", "claude-sonnet-5-5")
    } else {
        ("sk-phantom", "/v1", "test-model")
    }
}

impl AgentWorkFixture {
    /// Prepares a session; `None` if agent tests are skipped. The steps may refer to the
    /// repository.
    pub(super) async fn prepare<const N: usize>(
        name: &str,
        steps: impl FnOnce(&str) -> [ScenarioStep; N],
    ) -> Option<Self> {
        let program = agent_program(name)?;
        let root = tempfile::tempdir().unwrap();
        let preset = Agents::built_in().get(name).unwrap().clone();
        let mut search_path = program.parent().unwrap().as_os_str().to_owned();
        search_path.push(":/usr/local/bin:/usr/bin:/bin");
        let provider = LocalProvider::new(root.path(), search_path);
        let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
        let repo = root.path().join(&sandbox.id().0).join("repo");
        let upstream = FakeUpstream::start(UpstreamScenario::new(steps(repo.to_str().unwrap())));
        let (token, path, model) = login_settings(name);
        let base_url = upstream.url() + path;
        let settings = PresetAgentSettings {
            model: Some(model.into()),
            base_url: base_url.clone(),
            login: preset.credentials[0].environment(token, &base_url),
            clock: TestClock::running(),
        };
        let agent = preset.build_agent(&settings).unwrap();
        Some(Self {
            agent,
            sandbox,
            upstream,
            repo,
            timeout: Duration::from_secs(50),
            steering: None,
            _root: root,
        })
    }

    pub(super) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends a message when the agent uses its first tool.
    pub(super) fn with_message(mut self, message: &str) -> Self {
        self.steering = Some(message.to_owned());
        self
    }

    /// Runs the session with additional environment variables.
    pub(super) async fn run(self, variables: &[(&str, &str)]) -> (AgentTestOutcome, Self) {
        let command = self.agent.command("write hello.txt");
        let mut exec = Exec::argv(command.argv, self.timeout).with_stdin(command.stdin);
        exec.env = command.env;
        for (name, value) in variables {
            exec = exec.with_env(name, *value);
        }
        let (send, messages) = mpsc::unbounded_channel();
        let takes_messages = self.agent.message("").is_some();
        let (done, mut is_done) = watch::channel(false);
        let mut session = AgentTestOutput {
            reader: self.agent.reader(),
            line: Vec::new(),
            events: Vec::new(),
            stderr: Vec::new(),
            input: takes_messages.then_some(send),
            steering: self
                .steering
                .as_ref()
                .and_then(|text| self.agent.message(text)),
            done,
        };
        let mut messages = AgentTestInput(messages);
        let ended = tokio::select! {
            outcome = self.sandbox.exec(exec, Some(&mut messages), &mut session) => {
                outcome.unwrap().ended
            }
            () = async {
                is_done.wait_for(|done| *done).await.unwrap();
                tokio::time::sleep(GRACE).await;
            } => ExecStatus::Signalled(9),
        };
        let stderr = String::from_utf8_lossy(&session.stderr).into_owned();
        let (end, report) = session.reader.finish(ended, &stderr);
        let outcome = AgentTestOutcome {
            end,
            report,
            events: session.events,
            requests: self.upstream.model_requests(),
        };
        (outcome, self)
    }
}

/// Parses the output and sends the scheduled message.
struct AgentTestOutput {
    reader: Box<dyn AgentReader>,
    line: Vec<u8>,
    events: Vec<AgentEvent>,
    stderr: Vec<u8>,
    /// Dropping it closes the agent's input.
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    steering: Option<Vec<u8>>,
    done: watch::Sender<bool>,
}

impl OutputSink for AgentTestOutput {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        match stream {
            OutputStream::Stderr => self.stderr.extend_from_slice(bytes),
            OutputStream::Stdout => bytes.iter().for_each(|byte| self.byte(*byte)),
        }
    }
}

impl AgentTestOutput {
    fn byte(&mut self, byte: u8) {
        if byte != b'\n' {
            self.line.push(byte);
            return;
        }
        let line = std::mem::take(&mut self.line);
        let events = self.reader.parse_line(&String::from_utf8_lossy(&line));
        for event in events {
            if let (AgentEvent::Tool { .. }, Some(input)) = (&event, &self.input)
                && let Some(message) = self.steering.take()
            {
                input.send(message).unwrap();
            }
            self.events.push(event);
        }
        if self.reader.is_done() {
            self.input = None;
            self.done.send_replace(true);
        }
    }
}

struct AgentTestInput(mpsc::UnboundedReceiver<Vec<u8>>);

#[async_trait]
impl InputSource for AgentTestInput {
    async fn next(&mut self) -> Option<Vec<u8>> {
        self.0.recv().await
    }
}

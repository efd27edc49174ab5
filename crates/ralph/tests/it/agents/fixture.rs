//! A project with an agent, and its model's provider.

use std::io::Write as _;
use std::process::Stdio;

use ralph_test::{FakeUpstream, ScenarioStep, UpstreamScenario, agent_image, agent_program};

use crate::project::{Project, ProjectOutput};

/// The repository in a container.
pub(super) const REPO: &str = "/workspace/repo";

/// A fake credential, assembled at run time so that secret scanners ignore it.
pub(super) fn canary(agent: &str) -> String {
    let mark = if agent == "claude" {
        "ant-oat01"
    } else {
        "proj"
    };
    format!("sk-{mark}-{}", "Canary7x".repeat(6))
}

/// A project with a script as its agent, in the local sandbox.
pub(super) fn with_script(script: &str) -> Project {
    let project = Project::new().env("RALPH_DEFAULT_PROVIDER", "local");
    project.commit(".agent-loop/agent", script);
    project
}

/// A project for a real agent in a container, and its model's provider.
pub(super) struct AgentFixture {
    pub(super) project: Project,
    pub(super) upstream: FakeUpstream,
    pub(super) agent: &'static str,
}

impl AgentFixture {
    /// Prepares everything; `None` if agent or Docker tests are skipped.
    pub(super) fn new<const N: usize>(
        agent: &'static str,
        steps: [ScenarioStep; N],
    ) -> Option<Self> {
        let image = agent_image()?;
        let project = Project::new()
            .set("sandbox_provider", "docker")
            .set("sandbox_image", &image);
        let setup = Self {
            project,
            upstream: FakeUpstream::start(UpstreamScenario::new(steps)),
            agent,
        };
        setup.store_token();
        Some(setup)
    }

    /// Prepares the same without a container; `None` if agent tests are skipped.
    pub(super) fn local<const N: usize>(
        agent: &'static str,
        steps: [ScenarioStep; N],
    ) -> Option<Self> {
        let program = agent_program(agent)?;
        let programs = program.parent().unwrap().display();
        let project = Project::new()
            .env("RALPH_DEFAULT_PROVIDER", "local")
            .env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin"));
        let setup = Self {
            project,
            upstream: FakeUpstream::start(UpstreamScenario::new(steps)),
            agent,
        };
        setup.store_token();
        Some(setup)
    }

    /// Sets a key of the front matter.
    pub(super) fn set(mut self, key: &str, value: &str) -> Self {
        self.project = std::mem::replace(&mut self.project, Project::new()).set(key, value);
        self
    }

    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        self.project = std::mem::replace(&mut self.project, Project::new()).env(name, value);
        self
    }

    /// Returns the containers of its runs.
    pub(super) fn containers(&self) -> Vec<String> {
        self.project.docker_objects(&["ps", "--all"])
    }

    /// Stores the credential as a user would.
    fn store_token(&self) {
        let path = if self.agent == "claude" { "" } else { "/v1" };
        let address = format!("{}{path}", self.upstream.url());
        let mut storing = self
            .project
            .command(&[
                "store-token",
                "--no-validate",
                "--store",
                "file",
                "--agent",
                self.agent,
                "--auth",
                if self.agent == "claude" {
                    "oauth"
                } else {
                    "api-key"
                },
                "--base-url",
                &address,
            ])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = storing.stdin.take().unwrap();
        stdin.write_all(canary(self.agent).as_bytes()).unwrap();
        drop(stdin);
        let stored = storing.wait_with_output().unwrap();
        assert!(stored.status.success(), "{stored:?}");
    }

    /// Runs the agent on the task.
    pub(super) fn run(&self, more: &[&str]) -> ProjectOutput {
        let arguments = [&["run", "--agent", self.agent], more].concat();
        self.project.ralph(&arguments)
    }

    /// Returns the credentials of all requests to the upstream.
    pub(super) fn credentials(&self) -> Vec<String> {
        let requests = self.upstream.model_requests();
        requests
            .iter()
            .map(|request| request.header("authorization").unwrap_or("none").to_owned())
            .collect()
    }
}

impl Drop for AgentFixture {
    fn drop(&mut self) {
        self.project.remove_docker_objects();
    }
}

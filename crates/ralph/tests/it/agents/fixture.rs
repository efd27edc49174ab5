//! A project with an agent, and the provider that its model belongs to.

use std::io::Write as _;
use std::process::Stdio;

use ralph_test::{FakeUpstream, ScenarioStep, UpstreamScenario, agent_image, agent_program};

use crate::project::{Project, ProjectOutput};

/// Where the repository is in a container.
pub(super) const REPO: &str = "/workspace/repo";

/// A credential that is nobody's, put together so that no scanner takes it for a real one.
pub(super) fn canary(agent: &str) -> String {
    let mark = if agent == "claude" {
        "ant-oat01"
    } else {
        "proj"
    };
    format!("sk-{mark}-{}", "Canary7x".repeat(6))
}

/// A project whose agent is a script of its own, in the local sandbox.
pub(super) fn with_script(script: &str) -> Project {
    let project = Project::new().set("sandbox_provider", "local");
    project.commit(".agent-loop/agent", script);
    project
}

/// A project that a real agent works on in a container, and the provider of its model.
pub(super) struct AgentFixture {
    pub(super) project: Project,
    pub(super) upstream: FakeUpstream,
    pub(super) agent: &'static str,
}

impl AgentFixture {
    /// Prepares everything; none if agents or Docker are left out.
    pub(super) fn new<const N: usize>(
        agent: &'static str,
        steps: [ScenarioStep; N],
    ) -> Option<Self> {
        let image = agent_image()?;
        let project = Project::new()
            .set("sandbox_provider", "docker")
            .set("sandbox_image", &image);
        let house = Self {
            project,
            upstream: FakeUpstream::start(UpstreamScenario::new(steps)),
            agent,
        };
        house.store_token();
        Some(house)
    }

    /// Prepares the same without a container; none if agents are left out.
    pub(super) fn local<const N: usize>(
        agent: &'static str,
        steps: [ScenarioStep; N],
    ) -> Option<Self> {
        let program = agent_program(agent)?;
        let programs = program.parent().unwrap().display();
        let project = Project::new()
            .set("sandbox_provider", "local")
            .env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin"));
        let house = Self {
            project,
            upstream: FakeUpstream::start(UpstreamScenario::new(steps)),
            agent,
        };
        house.store_token();
        Some(house)
    }

    /// Sets a key of the front matter.
    pub(super) fn set(mut self, key: &str, value: &str) -> Self {
        self.project = std::mem::replace(&mut self.project, Project::new()).set(key, value);
        self
    }

    /// Returns the containers of its runs.
    pub(super) fn containers(&self) -> Vec<String> {
        self.project.docker_objects(&["ps", "--all"])
    }

    /// Stores the credential, as a person does.
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

    /// Lets the agent work on the task.
    pub(super) fn run(&self, more: &[&str]) -> ProjectOutput {
        let arguments = [&["run", "--agent", self.agent], more].concat();
        self.project.ralph(&arguments)
    }

    /// Returns what the upstream was asked, with the credential that came along.
    pub(super) fn credentials(&self) -> Vec<String> {
        let asked = self.upstream.model_requests();
        asked
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

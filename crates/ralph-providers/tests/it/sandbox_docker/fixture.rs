//! A provider with its own state directory, which leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{
    Exec, ExecOutcome, ExecStatus, Sandbox, SandboxError, SandboxId, SandboxProvider as _,
    SandboxSpec,
};
use ralph_guest::{available, best_effort};
use ralph_providers::sandbox::{DockerProvider, DockerSettings, DockerTransport};
use ralph_test::{BASE_IMAGE, CollectedOutput};
use tempfile::TempDir;

/// Long enough for any command that should end without intervention.
pub(super) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// A provider and the state directory of its sandboxes.
pub(super) struct DockerTestEnv {
    pub(super) provider: DockerProvider,
    pub(super) settings: DockerSettings,
    state: TempDir,
}

impl DockerTestEnv {
    pub(super) fn new() -> Self {
        Self::with_settings(|_| {})
    }

    /// Creates a provider from modified default settings.
    pub(super) fn with_settings(change: impl FnOnce(&mut DockerSettings)) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut settings = DockerSettings::new(BASE_IMAGE, state.path());
        change(&mut settings);
        Self {
            provider: DockerProvider::new(settings.clone()),
            settings,
            state,
        }
    }

    pub(super) fn attached() -> Self {
        Self::with_settings(|settings| settings.transport = DockerTransport::Attached)
    }

    /// Returns the state directory.
    pub(super) fn state(&self) -> &Path {
        self.state.path()
    }

    /// Returns another provider of the same sandboxes, like that of a second ralph process.
    pub(super) fn second_provider(&self) -> DockerProvider {
        DockerProvider::new(self.settings.clone())
    }

    pub(super) async fn sandbox(&self) -> Box<dyn Sandbox> {
        self.provider.create(&SandboxSpec::default()).await.unwrap()
    }

    /// Runs `docker` against the engine of this environment; it must succeed.
    pub(super) fn docker(&self, arguments: &[&str]) -> String {
        match self.try_docker(arguments) {
            Ok(text) => text,
            Err(text) => panic!("`docker {}`: {text}", arguments.join(" ")),
        }
    }

    /// Runs `docker` and returns its output or its error output.
    pub(super) fn try_docker(&self, arguments: &[&str]) -> Result<String, String> {
        let mut docker = Command::new("docker");
        if let Some(host) = &self.settings.host {
            docker.args(["--host", host]);
        }
        let output = docker.args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    /// Removes the sandboxes of this environment as a user would, and asserts that nothing is left.
    pub(super) async fn finish(self) {
        for found in self.provider.list().await.unwrap() {
            self.provider.discard(&found.id).await.unwrap();
        }
        self.assert_empty();
    }

    /// Asserts that nothing of this environment is left on the Docker Engine or in its directory.
    pub(super) fn assert_empty(&self) {
        let sockets = std::fs::read_dir(self.state().join("sockets"));
        let sockets: Vec<PathBuf> = sockets
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        let left = (self.containers(), self.volumes(), sockets);
        assert_eq!(left, (vec![], vec![], vec![]), "something is left behind");
    }

    fn containers(&self) -> Vec<String> {
        self.list_labelled(&["ps", "--all"])
    }

    fn volumes(&self) -> Vec<String> {
        self.list_labelled(&["volume", "ls"])
    }

    fn list_labelled(&self, list: &[&str]) -> Vec<String> {
        let label = format!("label=ralph.state={}", self.state().display());
        let arguments = [list, &["--quiet", "--filter", &label]].concat();
        // A Docker Engine that has stopped has no objects left.
        let listed = available(self.try_docker(&arguments)).unwrap_or_default();
        listed.lines().map(Into::into).collect()
    }
}

impl Drop for DockerTestEnv {
    fn drop(&mut self) {
        // Only after a panic; a completed test has already verified that nothing is left.
        for container in self.containers() {
            best_effort(self.try_docker(&["rm", "--force", "--volumes", &container]));
        }
        for volume in self.volumes() {
            best_effort(self.try_docker(&["volume", "rm", &volume]));
        }
    }
}

/// Returns the name of a sandbox's container and volume.
pub(super) fn object_name(id: &SandboxId) -> String {
    id.0.replace("docker-", "ralph-")
}

/// Returns the inspection of a sandbox's container.
pub(super) fn inspect(env: &DockerTestEnv, id: &SandboxId) -> serde_json::Value {
    let json = env.docker(&["container", "inspect", &object_name(id)]);
    let mut list: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    list.remove(0)
}

pub(super) fn repo(path: &str) -> SandboxPath {
    SandboxPath::in_repo(&WorkspacePath::parse(path).unwrap())
}

/// Runs a command to completion.
pub(super) async fn run(sandbox: &dyn Sandbox, exec: Exec) -> (ExecOutcome, CollectedOutput) {
    let (outcome, output) = try_run(sandbox, exec).await;
    (outcome.unwrap(), output)
}

/// Runs a command that may be interrupted.
pub(super) async fn try_run(
    sandbox: &dyn Sandbox,
    exec: Exec,
) -> (Result<ExecOutcome, SandboxError>, CollectedOutput) {
    let mut output = CollectedOutput::default();
    let outcome = sandbox.exec(exec, None, &mut output).await;
    (outcome, output)
}

/// Runs a shell command that must succeed.
pub(super) async fn sh(sandbox: &dyn Sandbox, line: &str) -> String {
    let (outcome, output) = run(sandbox, Exec::shell(line, TEST_TIMEOUT)).await;
    let stderr = output.stderr_text();
    assert_eq!(
        outcome.ended,
        ExecStatus::Exited(0),
        "`{line}` printed: {stderr}"
    );
    output.stdout_text()
}

/// Runs a shell command that must succeed, as root in a sandbox's container.
pub(super) fn root_sh(env: &DockerTestEnv, sandbox: &dyn Sandbox, line: &str) -> String {
    let container = object_name(sandbox.id());
    env.docker(&["exec", "--user", "0", &container, "sh", "-c", line])
}

/// Returns the number of processes in a sandbox, except the first one.
pub(super) async fn other_processes(sandbox: &dyn Sandbox) -> String {
    let count = "import os
print(sum(1 for name in os.listdir('/proc') if name.isdigit()) - 2)";
    let (_, output) = run(sandbox, Exec::argv(["python3", "-c", count], TEST_TIMEOUT)).await;
    output.stdout_text().trim().to_owned()
}

//! A provider in its own directory.

use std::path::PathBuf;
use std::time::Duration;

use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{
    Exec, ExecOutcome, ExecStatus, Sandbox, SandboxProvider as _, SandboxSpec,
};
use ralph_providers::sandbox::LocalProvider;
use ralph_test::CollectedOutput;
use tempfile::TempDir;

/// Long enough for any command that should end without intervention.
pub(super) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) struct LocalTestEnv {
    directory: TempDir,
    pub(super) provider: LocalProvider,
}

impl LocalTestEnv {
    pub(super) fn new() -> Self {
        // Outside `/tmp`, because commands have a private one.
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let provider = provider_at(directory.path().join("sandboxes"));
        Self {
            directory,
            provider,
        }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.directory.path().join("sandboxes")
    }

    /// Returns a file outside all sandboxes.
    pub(super) fn outside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) async fn sandbox(&self) -> Box<dyn Sandbox> {
        self.provider.create(&SandboxSpec::default()).await.unwrap()
    }
}

pub(super) fn provider_at(root: PathBuf) -> LocalProvider {
    LocalProvider::new(root, std::env::var_os("PATH").unwrap())
}

pub(super) fn repo(path: &str) -> SandboxPath {
    SandboxPath::in_repo(&WorkspacePath::parse(path).unwrap())
}

pub(super) async fn run(sandbox: &dyn Sandbox, exec: Exec) -> (ExecOutcome, CollectedOutput) {
    let mut output = CollectedOutput::default();
    let outcome = sandbox.exec(exec, None, &mut output).await.unwrap();
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

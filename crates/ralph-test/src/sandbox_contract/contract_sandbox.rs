//! The fixture of a contract check: a provider, a fresh sandbox and helpers for both.

use std::time::Duration;

use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{
    Exec, ExecOutcome, ExecStatus, Labels, Sandbox, SandboxError, SandboxProvider, SandboxSpec,
    WriteMode,
};

use crate::CollectedOutput;

/// Long enough for everything that ends without being killed.
pub(super) const AMPLE_TIMEOUT: Duration = Duration::from_mins(1);
/// Larger than any file in the suite.
pub(super) const READ_LIMIT: u64 = 16 << 20;

/// Defined for the shell commands of the suite: `detached` runs a command in its own session, and
/// `$BEAT` is a command line that writes to the file `beat` while it is running.
const PRELUDE: &str = r#"BEAT='while :; do echo . >> beat; sleep 0.02; done'
detached() {
    if command -v setsid >/dev/null; then setsid "$@"
    else perl -MPOSIX -e 'fork and exit; POSIX::setsid(); exec @ARGV' "$@"; fi
}
"#;

/// The fixture of one check.
pub(super) struct ContractSandbox<'a> {
    pub(super) provider: &'a dyn SandboxProvider,
    pub(super) sandbox: Box<dyn Sandbox>,
}

impl<'a> ContractSandbox<'a> {
    pub(super) async fn new(provider: &'a dyn SandboxProvider) -> Self {
        let sandbox = provider.create(&spec()).await;
        Self {
            provider,
            sandbox: sandbox.expect("a sandbox can be created"),
        }
    }

    /// Runs a command until it exits.
    pub(super) async fn exec(&self, exec: Exec) -> (ExecOutcome, CollectedOutput) {
        let mut output = CollectedOutput::default();
        let outcome = self.sandbox.exec(exec, None, &mut output).await;
        (outcome.expect("the command runs"), output)
    }

    /// Runs a command that is expected not to start.
    pub(super) async fn exec_error(&self, exec: Exec) -> SandboxError {
        let mut output = CollectedOutput::default();
        let outcome = self.sandbox.exec(exec, None, &mut output).await;
        outcome.expect_err("the command does not run")
    }

    /// Runs a shell command that must succeed and returns its output.
    pub(super) async fn sh(&self, line: &str) -> String {
        let (outcome, output) = self.exec(shell(line)).await;
        assert_eq!(
            outcome.ended,
            ExecStatus::Exited(0),
            "`{line}` printed: {}",
            output.stderr_text()
        );
        output.stdout_text()
    }

    pub(super) async fn write(&self, path: &str, bytes: &[u8]) {
        let written = self
            .sandbox
            .write(&repo_path(path), bytes, WriteMode::Replace)
            .await;
        written.expect("the file is written");
    }

    pub(super) async fn read(&self, path: &str) -> Result<Vec<u8>, SandboxError> {
        self.sandbox.read(&repo_path(path), READ_LIMIT).await
    }

    /// Waits for the first heartbeat.
    pub(super) async fn wait_for_heartbeat(&self) {
        let started = async {
            while self.read("beat").await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let started = tokio::time::timeout(AMPLE_TIMEOUT, started).await;
        started.expect("the command writes heartbeats");
    }

    /// Asserts that there were heartbeats and that they have stopped.
    pub(super) async fn assert_no_heartbeat(&self) {
        let before = self
            .read("beat")
            .await
            .expect("the command has written heartbeats");
        tokio::time::sleep(Duration::from_millis(250)).await;
        let after = self.read("beat").await.expect("the file still exists");
        assert_eq!(
            before.len(),
            after.len(),
            "a process of the command is still running"
        );
    }
}

/// Returns the spec of the suite's sandboxes.
pub(super) fn spec() -> SandboxSpec {
    SandboxSpec {
        labels: Labels::from([
            ("run".into(), "contract".into()),
            ("purpose".into(), "a \"quoted\" text, ünïcode".into()),
        ]),
        env: [("LAYER_A", "sandbox"), ("LAYER_B", "sandbox")]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
    }
}

/// Returns a shell command with the prelude and an ample timeout.
pub(super) fn shell(line: &str) -> Exec {
    shell_for(line, AMPLE_TIMEOUT)
}

/// Returns a shell command with the prelude and this timeout.
pub(super) fn shell_for(line: &str, timeout: Duration) -> Exec {
    Exec::shell(format!("{PRELUDE}{line}"), timeout)
}

/// Returns a path in the repository.
pub(super) fn repo_path(path: &str) -> SandboxPath {
    SandboxPath::in_repo(&WorkspacePath::parse(path).expect("a valid workspace path"))
}

//! What a promise stands on: a provider, a fresh sandbox, and short ways to use both.

use std::time::Duration;

use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{
    Exec, ExecOutcome, ExecStatus, Labels, Sandbox, SandboxError, SandboxProvider, SandboxSpec,
    WriteMode,
};

use crate::CollectedOutput;

/// Long enough for anything that should end by itself.
pub(super) const AMPLE_TIMEOUT: Duration = Duration::from_mins(1);
/// More than any file here has.
pub(super) const READ_LIMIT: u64 = 16 << 20;

/// What shell commands of the suite can use: `detached` runs a command in a session of its own, and
/// `$BEAT` is a command line that writes into the file `beat` for as long as it lives.
const PRELUDE: &str = r#"BEAT='while :; do echo . >> beat; sleep 0.02; done'
detached() {
    if command -v setsid >/dev/null; then setsid "$@"
    else perl -MPOSIX -e 'fork and exit; POSIX::setsid(); exec @ARGV' "$@"; fi
}
"#;

/// The place of one promise.
pub(super) struct ContractSandbox<'a> {
    pub(super) provider: &'a dyn SandboxProvider,
    pub(super) sandbox: Box<dyn Sandbox>,
}

impl<'a> ContractSandbox<'a> {
    pub(super) async fn new(provider: &'a dyn SandboxProvider) -> Self {
        let sandbox = provider.create(&spec()).await;
        Self {
            provider,
            sandbox: sandbox.expect("a sandbox can be made"),
        }
    }

    /// Runs a command to its end.
    pub(super) async fn exec(&self, exec: Exec) -> (ExecOutcome, CollectedOutput) {
        let mut output = CollectedOutput::default();
        let outcome = self.sandbox.exec(exec, None, &mut output).await;
        (outcome.expect("the command runs"), output)
    }

    /// Runs a command that is not expected to run at all.
    pub(super) async fn exec_error(&self, exec: Exec) -> SandboxError {
        let mut output = CollectedOutput::default();
        let outcome = self.sandbox.exec(exec, None, &mut output).await;
        outcome.expect_err("the command does not run")
    }

    /// Runs a shell command that has to succeed, and returns what it printed.
    pub(super) async fn sh(&self, line: &str) -> String {
        let (outcome, output) = self.exec(shell(line)).await;
        assert_eq!(
            outcome.ended,
            ExecStatus::Exited(0),
            "`{line}` said: {}",
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

    /// Waits until something beats.
    pub(super) async fn wait_for_heartbeat(&self) {
        let begun = async {
            while self.read("beat").await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let begun = tokio::time::timeout(AMPLE_TIMEOUT, begun).await;
        begun.expect("the command beats");
    }

    /// Asserts that something has beaten and nothing does any more.
    pub(super) async fn assert_no_heartbeat(&self) {
        let before = self.read("beat").await.expect("the command has beaten");
        tokio::time::sleep(Duration::from_millis(250)).await;
        let after = self.read("beat").await.expect("the file is still there");
        assert_eq!(
            before.len(),
            after.len(),
            "a process of the command still runs"
        );
    }
}

/// Returns what every sandbox of the suite is made from.
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

/// Returns a shell command with time enough, after the prelude.
pub(super) fn shell(line: &str) -> Exec {
    shell_for(line, AMPLE_TIMEOUT)
}

/// Returns such a shell command with this timeout.
pub(super) fn shell_for(line: &str, timeout: Duration) -> Exec {
    Exec::shell(format!("{PRELUDE}{line}"), timeout)
}

/// Returns a path in the repository.
pub(super) fn repo_path(path: &str) -> SandboxPath {
    SandboxPath::in_repo(&WorkspacePath::parse(path).expect("a path inside"))
}

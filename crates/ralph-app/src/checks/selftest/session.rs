//! The tested sandbox.

use std::time::Duration;

use ralph_core::ports::{
    Exec, ExecOutcome, ExecStatus, OutputSink, OutputStream, ProviderProblem, Sandbox,
    SandboxError, SandboxProvider, SandboxSpec,
};

use crate::checks::CheckOutcome;

/// The timeout of a command that should finish immediately.
pub(super) const QUICK_TIMEOUT: Duration = Duration::from_secs(20);
/// The limit of captured output, in bytes.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// The tested sandbox with its provider.
pub(super) struct SelftestSession<'a> {
    pub(super) provider: &'a dyn SandboxProvider,
    pub(super) sandbox: Box<dyn Sandbox>,
}

/// The captured output of a command, both streams together, up to a limit.
#[derive(Debug, Default)]
struct BoundedSelftestOutput(Vec<u8>);

impl OutputSink for BoundedSelftestOutput {
    fn chunk(&mut self, _: OutputStream, bytes: &[u8]) {
        let room = MAX_OUTPUT_BYTES.saturating_sub(self.0.len());
        self.0.extend(&bytes[..bytes.len().min(room)]);
    }
}

/// The exit and the output of a command.
#[derive(Debug)]
pub(super) struct SelftestCommandOutput {
    pub(super) outcome: ExecOutcome,
    pub(super) text: String,
}

impl<'a> SelftestSession<'a> {
    /// Creates the sandbox. Its labels identify it if this process is killed.
    pub(super) async fn start(
        provider: &'a dyn SandboxProvider,
        name: &str,
    ) -> Result<Self, SandboxError> {
        let labels = [("purpose", "selftest"), ("name", name)];
        let spec = SandboxSpec {
            labels: labels
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            env: std::collections::BTreeMap::new(),
        };
        let sandbox = provider.create(&spec).await?;
        Ok(Self { provider, sandbox })
    }

    /// Runs a shell command.
    pub(super) async fn shell(&self, command: &str) -> Result<SelftestCommandOutput, SandboxError> {
        self.run(Exec::shell(command, QUICK_TIMEOUT)).await
    }

    /// Runs a command.
    pub(super) async fn run(&self, exec: Exec) -> Result<SelftestCommandOutput, SandboxError> {
        let mut output = BoundedSelftestOutput::default();
        let outcome = self.sandbox.exec(exec, None, &mut output).await?;
        let text = String::from_utf8_lossy(&output.0).trim().to_owned();
        Ok(SelftestCommandOutput { outcome, text })
    }

    /// Runs a shell command that must succeed, and returns its output.
    pub(super) async fn run_successfully(&self, command: &str) -> Result<String, CheckOutcome> {
        let answer = self.shell(command).await.map_err(sandbox_failure)?;
        if answer.outcome.ended == ExecStatus::Exited(0) {
            Ok(answer.text)
        } else {
            let what = format!(
                "`{}` ended with {}: {}",
                command.lines().next().unwrap_or_default(),
                answer.outcome.ended,
                answer.text
            );
            Err(CheckOutcome::failed(what, "check its output"))
        }
    }

    /// Removes the sandbox and verifies that it no longer exists.
    pub(super) async fn remove_and_verify(self) -> CheckOutcome {
        let id = self.sandbox.id().clone();
        if let Err(error) = self.sandbox.remove().await {
            return sandbox_failure(error);
        }
        match self.provider.list().await {
            Ok(infos) if infos.iter().any(|info| info.id == id) => CheckOutcome::failed(
                format!("sandbox `{id}` still exists"),
                "remove it with `ralph prune-sandboxes`",
            ),
            Ok(_) => CheckOutcome::Passed(format!("{id} was removed")),
            Err(error) => sandbox_failure(error),
        }
    }
}

/// Converts a sandbox error into a failed check.
pub(super) fn sandbox_failure(error: SandboxError) -> CheckOutcome {
    sandbox_problem(error).into()
}

fn sandbox_problem(error: SandboxError) -> ProviderProblem {
    match error {
        SandboxError::Provider(problem) => problem,
        SandboxError::Gone(_)
        | SandboxError::Escapes(_)
        | SandboxError::NotRegular(_)
        | SandboxError::NotFound(_)
        | SandboxError::TooLarge { .. }
        | SandboxError::Spawn { .. }
        | SandboxError::Interrupted { .. }
        | SandboxError::Io { .. } => ProviderProblem {
            what: error.to_string(),
            fix: "check the sandbox provider with `ralph preflight`, then try again".into(),
        },
    }
}

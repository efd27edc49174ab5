//! The sandbox that is tried out.

use std::time::Duration;

use ralph_core::ports::{
    Ended, Exec, ExecOutcome, OutputSink, Problem, Sandbox, SandboxError, SandboxProvider,
    SandboxSpec, Stream,
};

use crate::cli::checks::Outcome;

/// How long a command may take that should take no time.
pub(super) const QUICK: Duration = Duration::from_secs(20);
/// How much of a command's output is kept.
const KEPT_BYTES: usize = 64 << 10;

/// The sandbox that is tried out, with the provider it is from.
pub(super) struct Session<'a> {
    pub(super) provider: &'a dyn SandboxProvider,
    pub(super) sandbox: Box<dyn Sandbox>,
}

/// What a command printed, on both streams, up to a bound.
#[derive(Debug, Default)]
struct Kept(Vec<u8>);

impl OutputSink for Kept {
    fn chunk(&mut self, _: Stream, bytes: &[u8]) {
        let room = KEPT_BYTES.saturating_sub(self.0.len());
        self.0.extend(&bytes[..bytes.len().min(room)]);
    }
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) outcome: ExecOutcome,
    pub(super) text: String,
}

impl<'a> Session<'a> {
    /// Makes the sandbox. Its marks let it be found if this process is killed.
    pub(super) async fn begin(
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
    pub(super) async fn shell(&self, command: &str) -> Result<Answer, SandboxError> {
        self.run(Exec::shell(command, QUICK)).await
    }

    /// Runs a command.
    pub(super) async fn run(&self, exec: Exec) -> Result<Answer, SandboxError> {
        let mut kept = Kept::default();
        let outcome = self.sandbox.exec(exec, &mut kept).await?;
        let text = String::from_utf8_lossy(&kept.0).trim().to_owned();
        Ok(Answer { outcome, text })
    }

    /// Runs a shell command that must succeed, and returns what it printed.
    pub(super) async fn succeed(&self, command: &str) -> Result<String, Outcome> {
        let answer = self.shell(command).await.map_err(broken)?;
        if answer.outcome.ended == Ended::Exited(0) {
            Ok(answer.text)
        } else {
            let what = format!(
                "`{}` ended with {}: {}",
                command.lines().next().unwrap_or_default(),
                answer.outcome.ended,
                answer.text
            );
            Err(Outcome::failed(what, "look at what it says"))
        }
    }

    /// Removes the sandbox and looks whether it is gone.
    pub(super) async fn end(self) -> Outcome {
        let id = self.sandbox.id().clone();
        if let Err(error) = self.sandbox.remove().await {
            return broken(error);
        }
        match self.provider.list().await {
            Ok(infos) if infos.iter().any(|info| info.id == id) => Outcome::failed(
                format!("sandbox `{id}` is still there"),
                "remove it with `ralph prune-sandboxes`",
            ),
            Ok(_) => Outcome::Passed(format!("{id} is gone")),
            Err(error) => broken(error),
        }
    }
}

/// Says what is wrong with a sandbox.
pub(super) fn broken(error: SandboxError) -> Outcome {
    problem(error).into()
}

fn problem(error: SandboxError) -> Problem {
    match error {
        SandboxError::Provider(problem) => problem,
        SandboxError::Gone(_)
        | SandboxError::Escapes(_)
        | SandboxError::NotRegular(_)
        | SandboxError::NotFound(_)
        | SandboxError::TooLarge { .. }
        | SandboxError::Spawn { .. }
        | SandboxError::Interrupted { .. }
        | SandboxError::Io { .. } => Problem {
            what: error.to_string(),
            fix: "look at it with `ralph preflight`, then try again".into(),
        },
    }
}

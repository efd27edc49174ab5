//! Requests to the source host that are repeated while it is not available or limits requests.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::{HostError, HostErrorKind, Scm, ScmError};
use ralph_core::publish::{PublishPolicy, host_wait};

use crate::attend::attend;
use crate::error::RunError;
use crate::git::GitError;
use crate::run::Run;
use crate::steps::{elapsed, random_jitter, wait_for_host};

/// The waits for a source host since its last response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HostPatience {
    waited: Duration,
    failures: u32,
}

/// The parts of git's messages about a network or a host that is not available.
const TRANSIENT_MESSAGES: [&str; 17] = [
    "Could not resolve",
    "Couldn't connect to server",
    "Failed to connect",
    "Connection refused",
    "Connection reset",
    "Network is unreachable",
    "No route to host",
    "timed out",
    "Timeout was reached",
    "Operation too slow",
    "Empty reply from server",
    "early EOF",
    "unexpected disconnect",
    "the remote end hung up unexpectedly",
    "was not closed cleanly",
    "returned error: 5",
    "(Internal Server Error)",
];

impl HostPatience {
    /// Waits after a transient error, and returns any other error.
    async fn wait_out(&mut self, run: &mut Run, error: ScmError) -> Result<(), RunError> {
        self.failures += 1;
        let now = run.recorder.clock.now();
        let delays = (&run.services.outage, random_jitter());
        let Some(wait) = host_wait(&error, self.failures, self.waited, now, delays) else {
            return Err(give_up(error, self.waited));
        };
        let started = elapsed(&run.recorder);
        wait_for_host(run, wait, error.to_string()).await?;
        // The user can end the wait early, and a pause after it is no wait for the host.
        self.waited += elapsed(&run.recorder).saturating_sub(started).min(wait);
        Ok(())
    }

    /// Waits after an error of git that a network or a host on it caused, and returns any other error.
    /// The command must be idempotent.
    pub(super) async fn wait_out_git(
        &mut self,
        run: &mut Run,
        error: GitError,
    ) -> Result<(), RunError> {
        let is_remote = run.services.scm.source_host().is_some();
        match git_outage(&error) {
            Some(outage) if is_remote => self.wait_out(run, ScmError::Host(outage)).await,
            Some(_) | None => Err(error.into()),
        }
    }
}

/// Returns the outage that made a git command fail; `None` for other errors.
pub(super) fn git_outage(error: &GitError) -> Option<HostError> {
    if let GitError::Login(ScmError::Host(error)) = error {
        return error.kind.is_transient().then(|| error.clone());
    }
    let GitError::Failed { command, message } = error else {
        return None;
    };
    let is_transient = TRANSIENT_MESSAGES.iter().any(|part| message.contains(part));
    is_transient.then(|| HostError {
        request: format!("git {command}"),
        request_id: None,
        kind: HostErrorKind::Unavailable {
            cause: message.clone(),
        },
    })
}

/// Sends a request, and repeats it after a transient error. The request must be idempotent.
pub(super) async fn host_request<T, F>(
    run: &mut Run,
    patience: &mut HostPatience,
    request: impl Fn(Arc<dyn Scm>) -> F,
) -> Result<T, RunError>
where
    F: Future<Output = Result<T, ScmError>>,
{
    let scm = run.services.scm.clone();
    if scm.source_host().is_none() {
        return Ok(request(scm).await?);
    }
    loop {
        let sending = request(scm.clone());
        match attend(&mut run.recorder.journal, &mut run.controls, sending).await? {
            Ok(response) => {
                *patience = HostPatience::default();
                return Ok(response);
            }
            Err(error) => patience.wait_out(run, error).await?,
        }
    }
}

fn give_up(error: ScmError, waited: Duration) -> RunError {
    match error {
        ScmError::Host(error) if error.kind.is_transient() => RunError::HostOutage {
            error: Box::new(error),
            waited,
        },
        error @ (ScmError::Host(_)
        | ScmError::CheckedOut { .. }
        | ScmError::Io { .. }
        | ScmError::Damaged { .. }) => RunError::Scm(error),
    }
}

/// Returns the settings of publishing: those of the plan and of the contract in force.
pub(super) fn policy(run: &Run) -> PublishPolicy {
    let settings = run.recorder.state().plan.settings.as_ref();
    let pinned = settings.and_then(|settings| settings.publish);
    pinned.unwrap_or_default().for_task(run.pinned.contract())
}

//! Requests to the source host that are repeated while it is not available or limits requests.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::{Scm, ScmError};
use ralph_core::publish::{PublishPolicy, host_wait};

use crate::attend::attend;
use crate::error::RunError;
use crate::run::Run;
use crate::steps::{random_jitter, wait_for_host};

/// The waits for a source host during one step of a run.
#[derive(Debug, Default)]
pub(super) struct HostPatience {
    waited: Duration,
    failures: u32,
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
        let error = match attend(&mut run.recorder.journal, &mut run.controls, sending).await? {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        patience.failures += 1;
        let now = run.recorder.clock.now();
        let delays = (&run.services.outage, random_jitter());
        let Some(wait) = host_wait(&error, patience.failures, patience.waited, now, delays) else {
            return Err(give_up(error, patience.waited));
        };
        wait_for_host(run, wait, error.to_string()).await?;
        patience.waited += wait;
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

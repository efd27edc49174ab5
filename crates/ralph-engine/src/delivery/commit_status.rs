//! Reports the result of the clean room as a status of the commit, so that a branch rule of the source host can
//! require it.

use std::sync::Arc;

use ralph_core::id::CommitId;
use ralph_core::plan::Delivery;
use ralph_core::ports::{CheckReport, CommitState, CommitStatus, HostCheck, Scm};

use crate::attend::attend;
use crate::error::RunError;
use crate::run::Run;

/// The context of the status.
const CONTEXT: &str = "ralph/clean-room";

/// Sets the status of a verified commit that was pushed. A host that does not permit it prevents nothing.
pub(super) async fn report_verification(
    run: &mut Run,
    commit: &CommitId,
    state: CommitState,
) -> Result<(), RunError> {
    let scm: Arc<dyn Scm> = run.services.scm.clone();
    let has_pull_request = run.recorder.state().plan.delivery == Delivery::PullRequest;
    let Some(host) = scm.source_host().filter(|_| has_pull_request) else {
        return Ok(());
    };
    let description = match state {
        CommitState::Success => "all checks pass on a clean checkout",
        CommitState::Failure => "a check fails on a clean checkout",
        CommitState::Pending | CommitState::Error => "the commit is not verified",
    };
    let status = CommitStatus {
        state,
        context: CONTEXT.to_owned(),
        description: description.to_owned(),
        url: None,
    };
    let setting = host.set_status(commit, &status);
    let set = attend(&mut run.recorder.journal, &mut run.controls, setting).await?;
    match set {
        Ok(()) => Ok(()),
        Err(error) => run
            .recorder
            .log_activity(&format!("the status of the commit is not set: {error}")),
    }
}

/// Returns the checks of others: the own status must not count as a check that has passed.
pub(super) fn without_own_status(mut report: CheckReport) -> CheckReport {
    let is_own = |check: &HostCheck| check.id.is_none() && check.name == CONTEXT;
    report.checks.retain(|check| !is_own(check));
    report
}

#[cfg(test)]
mod tests {
    use ralph_core::ports::HostErrorKind;

    use super::*;
    use crate::delivery::DeliveryOutcome;
    use crate::delivery::host_tests::{finished_work, policy, try_deliver};
    use crate::scripted_host::checks;

    #[tokio::test]
    async fn a_verified_commit_has_a_status() {
        for is_permitted in [true, false] {
            let (mut fixture, host) = finished_work(policy(true), &["build+"]).await;
            if !is_permitted {
                let message = "needs statuses=write".to_owned();
                let refused = HostErrorKind::Rejected { message };
                host.script().status_errors.push_back(refused);
            }
            let delivered = try_deliver(&mut fixture).await.unwrap();
            assert_eq!(delivered, DeliveryOutcome::Success);
            let activity = fixture.file("activity.log");
            let is_logged = activity.contains("the status of the commit is not set");
            assert_eq!(is_logged, !is_permitted, "{activity}");
            let statuses = host.script().statuses.clone();
            let expected = is_permitted.then_some(CommitState::Success);
            assert_eq!(statuses, Vec::from_iter(expected));
        }
    }

    #[test]
    fn the_own_status_is_no_check() {
        let mut report = checks("ralph/clean-room+ build+ ralph/clean-room+");
        // Only a check has an id.
        report.checks[0].id = None;
        let others = without_own_status(report);
        let names: Vec<&str> = others.checks.iter().map(|check| &*check.name).collect();
        assert_eq!(names, ["build", "ralph/clean-room"]);
    }
}

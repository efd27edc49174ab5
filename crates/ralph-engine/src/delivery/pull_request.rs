//! Opens and updates the pull request of a run.

use std::sync::Arc;

use ralph_core::event::DeliveryEvent;
use ralph_core::ports::{PullDraft, PullState, Scm};
use ralph_core::printable;
use ralph_core::publish::neutral::closing_references;
use ralph_core::surface::Surface;
use ralph_core::verdict::CheckResult;

use super::host_request::{HostPatience, host_request};
use super::pull_body;
use crate::error::RunError;
use crate::run::Run;

/// The most bytes of commit messages that are searched for closing keywords.
const MAX_MESSAGES: u64 = 4 << 20;
/// The most commits with closing keywords that the pull request names.
const MAX_CLOSING_COMMITS: usize = 20;

/// Opens or updates the pull request. A host opens at most one for a branch, whatever is repeated.
pub(super) async fn update_pull_request(run: &mut Run, draft: &PullDraft) -> Result<(), RunError> {
    let known = run.recorder.state().pull.as_ref().map(|pull| pull.number);
    if known.is_none() && run.services.scm.source_host().is_some() {
        run.recorder.append(DeliveryEvent::PullRequestStarted {
            branch: draft.head.clone(),
            head: draft.commit.clone(),
        })?;
    }
    let mut patience = HostPatience::default();
    let pull = host_request(run, &mut patience, move |scm: Arc<dyn Scm>| async move {
        match known {
            Some(number) => scm.update(number, draft).await,
            None => scm.open(draft).await,
        }
    })
    .await?;
    let opened = known.is_none();
    if run.recorder.state().pull.as_ref() != Some(&pull) {
        let verb = if opened { "opened" } else { "updated" };
        run.recorder
            .log_activity(&format!("pull request {} {verb}", pull.number))?;
        run.recorder
            .append(DeliveryEvent::PullRequestUpdated { pull, opened })?;
    }
    Ok(())
}

/// Returns the issues that commits of the branch close when they are merged. Commits of an agent
/// cannot be rewritten, so the pull request names them.
pub(super) async fn closed_issues(run: &Run) -> Result<Vec<String>, RunError> {
    if run.services.scm.source_host().is_none() {
        return Ok(Vec::new());
    }
    let state = run.recorder.state();
    let messages = run
        .bench
        .repo
        .messages(&state.plan.base, &state.head, MAX_MESSAGES);
    let commits = messages.await?.unwrap_or_default().into_iter();
    let named = commits.filter_map(|(id, message)| {
        let issues = closing_references(&message, state.plan.issue_number());
        (!issues.is_empty()).then(|| format!("commit {id} closes {}", issues.join(", ")))
    });
    Ok(named.take(MAX_CLOSING_COMMITS).collect())
}

/// Returns the desired content of the pull request.
pub(super) fn pull_draft(
    run: &Run,
    state: PullState,
    evidence: &[CheckResult],
    (surface, closes): (&Surface, &[String]),
) -> PullDraft {
    let (recorder, pinned) = (&run.recorder, &run.pinned);
    let settings = &pinned.contract().pr;
    let redactor = &recorder.redactor;
    let clean = |text: &str| printable::escape_text(&redactor.redact(text)).into_owned();
    let facts = pull_body::PullRequestFacts {
        state: recorder.state(),
        task: pinned.task(),
        evidence,
        surface,
        closes,
    };
    let plan = &recorder.state().plan;
    PullDraft {
        run: plan.run.to_string(),
        head: plan.branch.clone(),
        base: plan.base_branch.clone(),
        commit: recorder.state().head.clone(),
        title: clean(&pull_body::title(&facts)),
        body: clean(&pull_body::body(&facts)),
        labels: settings.labels.clone(),
        state: if settings.draft {
            state
        } else {
            PullState::Open
        },
    }
}

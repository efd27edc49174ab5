//! A source host in memory for unit tests: pull requests, and prepared responses about checks,
//! reviews and the pull requests of others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ralph_core::id::CommitId;
use ralph_core::ports::{
    CheckConclusion, CheckReport, CommitState, CommitStatus, HostAccess, HostBranch, HostCheck,
    HostError, HostErrorKind, HostIssue, HostRepository, IssueLabel, IssueTracker, KeyedComment,
    OpenPull, PullDraft, PullRequest, PullReview, PullState, Scm, ScmError, SourceHost,
};

use crate::run_fixture::RunFixture;

/// The address of a git server that does not exist.
const UNREACHABLE: &str = "https://127.0.0.1:1/owner/repo";

/// The prepared responses, and what the run sent.
#[derive(Default)]
pub(crate) struct HostScript {
    /// The reports about checks, one per request; the last one is repeated.
    pub(crate) checks: VecDeque<CheckReport>,
    /// Errors that precede the responses, one per request for checks.
    pub(crate) check_errors: VecDeque<HostErrorKind>,
    /// Whether the response of the next `open` is lost after its effect.
    pub(crate) loses_open: bool,
    pub(crate) reviews: Vec<PullReview>,
    pub(crate) others: Vec<OpenPull>,
    pub(crate) base_head: Option<CommitId>,
    pub(crate) base_pull: Option<PullRequest>,
    /// The head that the host reports instead of the last one that was sent.
    pub(crate) other_head: Option<CommitId>,
    /// The state that the host reports instead of a draft.
    pub(crate) pull_state: Option<PullState>,
    /// How many of the next git commands find no host.
    pub(crate) git_outage: u32,
    /// Errors that precede the statuses, one per request.
    pub(crate) status_errors: VecDeque<HostErrorKind>,
    /// The statuses of commits, oldest first.
    pub(crate) statuses: Vec<CommitState>,
    /// The drafts of the pull request, oldest first.
    pub(crate) drafts: Vec<PullDraft>,
    /// The number of pull requests that were created.
    pub(crate) created: u64,
}

/// A source host that follows a script.
#[derive(Clone)]
pub(crate) struct ScriptedHost {
    remote: String,
    pub(crate) script: Arc<Mutex<HostScript>>,
}

/// Parses checks such as `build+ test- lint?`: passed, failed, pending.
pub(crate) fn checks(text: &str) -> CheckReport {
    let check = |check: &str| {
        let (name, state) = check.split_at(check.len() - 1);
        HostCheck {
            id: Some(1),
            name: name.into(),
            url: None,
            conclusion: match state {
                "+" => Some(CheckConclusion::Passed),
                "-" => Some(CheckConclusion::Failed),
                _ => None,
            },
            state: "failure".into(),
        }
    };
    CheckReport {
        checks: text.split_whitespace().map(check).collect(),
    }
}

pub(crate) fn host_error(kind: HostErrorKind) -> ScmError {
    ScmError::Host(HostError {
        request: "GET /x".into(),
        request_id: None,
        kind,
    })
}

impl ScriptedHost {
    /// Replaces the source host of a run.
    pub(crate) fn connect(fixture: &mut RunFixture, reports: &[&str]) -> Self {
        let host = Self {
            remote: fixture.user_repo().display().to_string(),
            script: Arc::default(),
        };
        host.script().checks = reports.iter().map(|text| checks(text)).collect();
        fixture.run.services.scm = Arc::new(host.clone());
        host
    }

    pub(crate) fn script(&self) -> std::sync::MutexGuard<'_, HostScript> {
        self.script.lock().unwrap()
    }

    /// Returns the last draft of the pull request.
    pub(crate) fn last_draft(&self) -> PullDraft {
        self.script().drafts.last().cloned().unwrap()
    }

    fn record(&self, draft: &PullDraft) -> PullRequest {
        let mut script = self.script();
        script.drafts.push(draft.clone());
        PullRequest {
            number: 7,
            url: "https://host/pull/7".into(),
            state: draft.state,
            head: draft.commit.clone(),
        }
    }
}

#[async_trait]
impl Scm for ScriptedHost {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn remote(&self) -> &str {
        let mut script = self.script();
        if script.git_outage > 0 {
            script.git_outage -= 1;
            return UNREACHABLE;
        }
        &self.remote
    }

    fn source_host(&self) -> Option<&dyn SourceHost> {
        Some(self)
    }

    async fn check_push(&self, _: &str) -> Result<(), ScmError> {
        Ok(())
    }

    async fn find(&self, _: &str) -> Result<Option<PullRequest>, ScmError> {
        Ok(None)
    }

    async fn open(&self, draft: &PullDraft) -> Result<PullRequest, ScmError> {
        let is_new = self.script().drafts.is_empty();
        self.script().created += u64::from(is_new);
        let pull = self.record(draft);
        if std::mem::take(&mut self.script().loses_open) {
            let cause = "the connection was closed".into();
            return Err(host_error(HostErrorKind::Unavailable { cause }));
        }
        Ok(pull)
    }

    async fn update(&self, _: u64, draft: &PullDraft) -> Result<PullRequest, ScmError> {
        Ok(self.record(draft))
    }
}

#[async_trait]
impl SourceHost for ScriptedHost {
    async fn validate(&self) -> Result<HostAccess, ScmError> {
        Ok(HostAccess {
            account: "ralph-bot".into(),
            missing: Vec::new(),
        })
    }

    async fn repository(&self) -> Result<HostRepository, ScmError> {
        Ok(HostRepository {
            full_name: "owner/repo".into(),
            default_branch: "trunk".into(),
            private: false,
            archived: false,
            can_push: Some(true),
        })
    }

    async fn branch(&self, _: &str) -> Result<Option<HostBranch>, ScmError> {
        let head = self.script().base_head.clone();
        Ok(head.map(|head| HostBranch {
            head,
            protected: false,
        }))
    }

    async fn pull(&self, number: u64) -> Result<PullRequest, ScmError> {
        let draft = self.last_draft();
        let script = self.script();
        let other = script.other_head.clone();
        Ok(PullRequest {
            number,
            url: "https://host/pull/7".into(),
            state: script.pull_state.unwrap_or(PullState::Draft),
            head: other.unwrap_or(draft.commit),
        })
    }

    async fn last_pull_of(&self, _: &str) -> Result<Option<PullRequest>, ScmError> {
        Ok(self.script().base_pull.clone())
    }

    async fn open_pulls(&self) -> Result<Vec<OpenPull>, ScmError> {
        Ok(self.script().others.clone())
    }

    async fn reviews(&self, _: u64) -> Result<Vec<PullReview>, ScmError> {
        Ok(self.script().reviews.clone())
    }

    async fn checks(&self, _: &CommitId) -> Result<CheckReport, ScmError> {
        let mut script = self.script();
        if let Some(kind) = script.check_errors.pop_front() {
            return Err(host_error(kind));
        }
        if script.checks.len() > 1 {
            return Ok(script.checks.pop_front().unwrap());
        }
        Ok(script.checks.front().cloned().unwrap_or_default())
    }

    async fn failure_output(&self, check: &HostCheck, _: usize) -> Result<String, ScmError> {
        Ok(format!(
            "the output of {}\nerror[E1]: it is wrong",
            check.name
        ))
    }

    async fn set_status(&self, _: &CommitId, status: &CommitStatus) -> Result<(), ScmError> {
        let mut script = self.script();
        if let Some(kind) = script.status_errors.pop_front() {
            return Err(host_error(kind));
        }
        script.statuses.push(status.state);
        Ok(())
    }

    fn issues(&self) -> &dyn IssueTracker {
        self
    }
}

fn unused<T>() -> Result<T, ScmError> {
    let message = "not part of these tests".into();
    Err(host_error(HostErrorKind::Rejected { message }))
}

#[async_trait]
impl IssueTracker for ScriptedHost {
    async fn viewer(&self) -> Result<Option<String>, ScmError> {
        Ok(Some("ralph-bot".into()))
    }

    async fn issue(&self, _: u64) -> Result<Option<HostIssue>, ScmError> {
        unused()
    }

    async fn open_issues(&self, _: &[&str]) -> Result<Vec<HostIssue>, ScmError> {
        unused()
    }

    async fn set_body(&self, _: u64, _: &str) -> Result<(), ScmError> {
        unused()
    }

    async fn add_labels(&self, _: u64, _: &[&str]) -> Result<(), ScmError> {
        unused()
    }

    async fn remove_label(&self, _: u64, _: &str) -> Result<bool, ScmError> {
        unused()
    }

    async fn create_labels(&self, _: &[IssueLabel]) -> Result<(), ScmError> {
        unused()
    }

    async fn comment(&self, _: u64, _: &KeyedComment) -> Result<(), ScmError> {
        unused()
    }

    async fn find_comment(&self, _: u64, _: &str) -> Result<Option<String>, ScmError> {
        unused()
    }
}

//! Lists the specifications of a repository with their status, what each waits for, and the claims of this machine.

use ralph_core::ports::HostIssue;
use ralph_core::spec::{IssueStatus, Spec};
use serde::Serialize;
use utoipa::ToSchema;

use super::dependencies::{DependencyGate, KnownIssues};
use super::repository::IssueRepository;
use crate::error::AppError;

/// The open specifications of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct IssueOverview {
    /// `owner/name`.
    pub repository: String,
    /// The logins whose issues the poller works on.
    pub authors: Vec<String>,
    /// By status, then by number.
    pub issues: Vec<IssueEntry>,
}

/// An open specification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct IssueEntry {
    pub number: u64,
    pub title: String,
    pub author: String,
    pub status: IssueEntryStatus,
    /// Whether the poller would work on it.
    pub is_by_author: bool,
    /// The issues that must be done first.
    pub waits_for: Vec<u64>,
    /// The issues on the way of a dependency on itself.
    pub cycle: Vec<u64>,
    /// The last run of this machine.
    pub run: Option<String>,
    /// Whether this machine has claimed it.
    pub claimed: bool,
}

/// The status of a specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IssueEntryStatus {
    Ready,
    InProgress,
    Done,
    NeedsAttention,
    Blocked,
}

impl From<IssueStatus> for IssueEntryStatus {
    fn from(status: IssueStatus) -> Self {
        match status {
            IssueStatus::Ready => Self::Ready,
            IssueStatus::InProgress => Self::InProgress,
            IssueStatus::Done => Self::Done,
            IssueStatus::NeedsAttention => Self::NeedsAttention,
            IssueStatus::Blocked => Self::Blocked,
        }
    }
}

impl IssueOverview {
    /// Reads the open specifications of a repository.
    pub async fn read(repository: &IssueRepository) -> Result<Self, AppError> {
        let mut known = KnownIssues::default();
        let mut issues: Vec<IssueEntry> = Vec::new();
        for status in IssueStatus::ALL {
            for issue in repository.issues_with(status).await? {
                // An interrupted change of labels leaves an issue with two.
                if issues.iter().any(|entry| entry.number == issue.number) {
                    continue;
                }
                issues.push(entry(&issue, status, &mut known, repository).await?);
            }
        }
        Ok(Self {
            repository: repository.name(),
            authors: repository.authors(),
            issues,
        })
    }
}

async fn entry(
    issue: &HostIssue,
    status: IssueStatus,
    known: &mut KnownIssues,
    repository: &IssueRepository,
) -> Result<IssueEntry, AppError> {
    let number = issue.number;
    let depends = Spec::dependencies_in(&issue.body);
    let gate = match status {
        IssueStatus::Done => DependencyGate::Open,
        IssueStatus::Ready
        | IssueStatus::InProgress
        | IssueStatus::NeedsAttention
        | IssueStatus::Blocked => known.check(number, &depends, repository).await?,
    };
    let (waits_for, cycle) = match gate {
        DependencyGate::Open => (Vec::new(), Vec::new()),
        DependencyGate::Waiting(unmet) => (unmet.on, Vec::new()),
        DependencyGate::Cycle(cycle) => (Vec::new(), cycle),
    };
    let claim = repository.records.load_claim(number)?;
    let record = repository.records.load(number)?;
    Ok(IssueEntry {
        number,
        title: issue.title.clone(),
        author: issue.author.clone(),
        status: status.into(),
        is_by_author: repository.is_by_author(issue),
        waits_for,
        cycle,
        run: record.map(|record| record.run.to_string()),
        claimed: claim.is_some(),
    })
}

//! The issues of a repository.

use async_trait::async_trait;

use super::{KeyedComment, ScmError};

/// An issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostIssue {
    pub number: u64,
    pub url: String,
    pub title: String,
    /// Empty if the host has none.
    pub body: String,
    pub labels: Vec<String>,
    /// The login of the author.
    pub author: String,
    pub open: bool,
}

/// A label of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueLabel {
    pub name: String,
    /// Six hexadecimal digits.
    pub color: String,
    pub description: String,
}

/// The issues of a repository. Pull requests are not issues.
#[async_trait]
pub trait IssueTracker: Send + Sync {
    /// Returns the login of the credential's user; `None` for an App.
    async fn viewer(&self) -> Result<Option<String>, ScmError>;
    /// Returns an issue; `None` if the number does not exist or is a pull request.
    async fn issue(&self, number: u64) -> Result<Option<HostIssue>, ScmError>;
    /// Returns the open issues that have all these labels, oldest first, at most 1000.
    async fn open_issues(&self, labels: &[&str]) -> Result<Vec<HostIssue>, ScmError>;
    /// Replaces the body of an issue.
    async fn set_body(&self, number: u64, body: &str) -> Result<(), ScmError>;
    /// Adds labels to an issue.
    async fn add_labels(&self, number: u64, labels: &[&str]) -> Result<(), ScmError>;
    /// Removes a label from an issue. Returns whether the issue had it, which decides between two
    /// processes that remove it at the same time. Fails if a lost response hides which of them did.
    async fn remove_label(&self, number: u64, label: &str) -> Result<bool, ScmError>;
    /// Creates the labels that the repository does not have.
    async fn create_labels(&self, labels: &[IssueLabel]) -> Result<(), ScmError>;
    /// Comments on an issue, or updates the comment with the same key.
    async fn comment(&self, number: u64, comment: &KeyedComment) -> Result<(), ScmError>;
    /// Returns the comment with a key, if there is one.
    async fn find_comment(&self, number: u64, key: &str) -> Result<Option<String>, ScmError>;
}

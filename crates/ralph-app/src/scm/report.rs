//! The result of checking a repository.

use ralph_core::secret::Redactor;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::AppError;
use crate::providers::github::{PermissionCheck, RateLimit};

/// The result for a repository.
#[derive(Debug)]
pub enum ScmReport {
    /// The repository is on GitHub or on a server with its API.
    GitHub(Box<GitHubReport>),
    /// The repository has no remote, so the local host is used.
    Local(LocalReport),
}

/// A repository on this machine without a remote on a source host.
#[derive(Debug, PartialEq, Eq)]
pub struct LocalReport {
    pub path: String,
}

/// A repository on GitHub.
#[derive(Debug)]
pub struct GitHubReport {
    pub host: String,
    pub api: String,
    /// The current `owner/name`.
    pub repository: String,
    /// The requested `owner/name`, if the repository has another name now.
    pub renamed_from: Option<String>,
    pub default_branch: String,
    /// Whether the default branch is protected; `None` if it does not exist yet.
    pub is_default_branch_protected: Option<bool>,
    pub is_private: bool,
    pub is_archived: bool,
    pub credential_kind: String,
    pub credential_source: String,
    /// The expiry of the token, as GitHub formats it.
    pub credential_expiry: Option<String>,
    /// The account of commits, pull requests and comments.
    pub acts_as: String,
    pub permissions: Vec<PermissionCheck>,
    pub rate_limit: Option<RateLimit>,
    /// The reasons why ralph cannot work with the repository.
    pub problems: Vec<AppError>,
    /// Restrictions that do not prevent ralph from working.
    pub notes: Vec<String>,
}

impl ScmReport {
    /// Returns whether ralph can work with the repository.
    pub fn is_usable(&self) -> bool {
        match self {
            Self::GitHub(report) => report.problems.is_empty(),
            Self::Local(_) => true,
        }
    }

    /// Returns the report as JSON, without secrets.
    pub fn check_report(&self, redactor: &Redactor) -> ScmCheckReport {
        match self {
            Self::GitHub(report) => ScmCheckReport::Github(Box::new(report.check(redactor))),
            Self::Local(report) => ScmCheckReport::Local(LocalCheck {
                path: report.path.clone(),
                usable: true,
            }),
        }
    }
}

/// The result of checking a repository, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ScmCheckReport {
    Github(Box<GitHubCheck>),
    Local(LocalCheck),
}

/// A repository on this machine without a remote on a source host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LocalCheck {
    pub path: String,
    pub usable: bool,
}

/// A repository on GitHub or on a server with its API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GitHubCheck {
    pub usable: bool,
    pub host: String,
    pub api_url: String,
    /// The current `owner/name`.
    pub repository: String,
    pub renamed_from: Option<String>,
    pub default_branch: String,
    /// Null if the branch does not exist or is not readable.
    pub default_branch_protected: Option<bool>,
    pub private: bool,
    pub archived: bool,
    pub credential: ScmCredential,
    /// The account of commits, pull requests and comments.
    pub acts_as: String,
    pub permissions: Vec<ScmPermission>,
    pub rate_limit: Option<ScmRateLimit>,
    pub problems: Vec<ScmProblem>,
    pub notes: Vec<String>,
}

/// The credential of a source host, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScmCredential {
    pub kind: String,
    pub source: String,
    /// As GitHub formats it.
    pub expires: Option<String>,
}

/// A permission that ralph needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScmPermission {
    pub name: String,
    pub needs: String,
    pub granted: String,
    pub required: bool,
    pub missing: bool,
}

/// The requests that the source host still accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScmRateLimit {
    pub limit: u64,
    pub remaining: u64,
    pub reset: String,
}

/// Why ralph cannot work with a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScmProblem {
    pub what: String,
    pub why: String,
    pub fix: String,
}

impl GitHubReport {
    fn check(&self, redactor: &Redactor) -> GitHubCheck {
        let problem = |error: &AppError| {
            let AppError { what, why, fix, .. } = error.clone().redacted(redactor);
            ScmProblem { what, why, fix }
        };
        let permission = |check: &PermissionCheck| ScmPermission {
            name: check.name.to_owned(),
            needs: check.needs.as_str().to_owned(),
            granted: check.granted.as_str().to_owned(),
            required: !check.is_optional,
            missing: check.is_missing(),
        };
        GitHubCheck {
            usable: self.problems.is_empty(),
            host: self.host.clone(),
            api_url: self.api.clone(),
            repository: self.repository.clone(),
            renamed_from: self.renamed_from.clone(),
            default_branch: self.default_branch.clone(),
            default_branch_protected: self.is_default_branch_protected,
            private: self.is_private,
            archived: self.is_archived,
            credential: ScmCredential {
                kind: self.credential_kind.clone(),
                source: self.credential_source.clone(),
                expires: self.credential_expiry.clone(),
            },
            acts_as: self.acts_as.clone(),
            permissions: self.permissions.iter().map(permission).collect(),
            rate_limit: self.rate_limit.map(|limit| ScmRateLimit {
                limit: limit.limit,
                remaining: limit.remaining,
                reset: limit.reset.to_string(),
            }),
            problems: self.problems.iter().map(problem).collect(),
            notes: self.notes.clone(),
        }
    }
}

//! The result of checking a repository.

use serde_json::{Value, json};

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

    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        match self {
            Self::GitHub(report) => report.json(),
            Self::Local(report) => json!({
                "kind": "local",
                "path": report.path,
                "usable": true,
            }),
        }
    }
}

impl GitHubReport {
    fn json(&self) -> Value {
        let problem =
            |error: &AppError| json!({"what": error.what, "why": error.why, "fix": error.fix});
        json!({
            "kind": "github",
            "usable": self.problems.is_empty(),
            "host": self.host,
            "api_url": self.api,
            "repository": self.repository,
            "renamed_from": self.renamed_from,
            "default_branch": self.default_branch,
            "default_branch_protected": self.is_default_branch_protected,
            "private": self.is_private,
            "archived": self.is_archived,
            "credential": {
                "kind": self.credential_kind,
                "source": self.credential_source,
                "expires": self.credential_expiry,
            },
            "acts_as": self.acts_as,
            "permissions": self.permissions.iter().map(|check| json!({
                "name": check.name,
                "needs": check.needs,
                "granted": check.granted,
                "required": !check.is_optional,
                "missing": check.is_missing(),
            })).collect::<Vec<_>>(),
            "rate_limit": self.rate_limit.map(|limit| json!({
                "limit": limit.limit,
                "remaining": limit.remaining,
                "reset": limit.reset.to_string(),
            })),
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

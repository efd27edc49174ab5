//! The state of the server, and its faults.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::model_api::ReceivedRequest;

/// A token that the server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FakeGitHubToken {
    /// A classic token with these scopes.
    Classic(&'static str),
    /// A fine-grained token that may not read these resources, such as `issues`.
    FineGrained(&'static [&'static str]),
    /// A token of an App's installation.
    Installation,
}

/// A fault of the server. It applies to every request until it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitHubFault {
    /// The primary rate limit is exceeded.
    PrimaryLimit,
    /// A secondary rate limit is exceeded for this many seconds.
    SecondaryLimit(u64),
    /// The server fails with this status.
    Status(u16),
    /// Every request is redirected to this address.
    Redirect(String),
    /// The token must be authorised for single sign-on.
    SingleSignOn,
}

/// A request and its response.
#[derive(Debug, Clone)]
pub struct GitHubExchange {
    pub request: ReceivedRequest,
    pub status: u16,
    pub body: Value,
}

/// The repositories and credentials of the server. A test changes it at any time.
#[derive(Debug)]
pub struct FakeGitHubState {
    /// The accepted tokens by value.
    pub tokens: BTreeMap<String, FakeGitHubToken>,
    /// The login of the tokens' user.
    pub login: String,
    /// The id of the App whose key is [`FakeGitHub::APP_KEY`](super::FakeGitHub::APP_KEY).
    pub app_id: u64,
    /// The accounts that have installed the App.
    pub installations: Vec<String>,
    /// The permissions of each installation.
    pub installation_permissions: Value,
    /// The `full_name` and the changed fields of each repository.
    pub repositories: BTreeMap<String, Value>,
    /// The new names of renamed repositories.
    pub renamed: BTreeMap<String, String>,
    /// Whether the default branches are protected.
    pub are_branches_protected: bool,
    pub fault: Option<GitHubFault>,
    /// By how many seconds the server's clock is ahead of this machine's.
    pub clock_ahead: i64,
    /// The number of entries on a page of a list.
    pub page_size: usize,
    pub(super) created_tokens: usize,
    pub(super) ledger: Vec<GitHubExchange>,
}

impl Default for FakeGitHubState {
    fn default() -> Self {
        let repository = json!({"private": true, "default_branch": "main"});
        Self {
            tokens: BTreeMap::new(),
            login: "octocat".into(),
            app_id: 4711,
            installations: vec!["octo".into()],
            installation_permissions: json!({
                "metadata": "read", "contents": "write", "pull_requests": "write", "issues": "write",
                "checks": "read", "statuses": "write", "workflows": "write",
            }),
            repositories: BTreeMap::from([("octo/app".into(), repository)]),
            renamed: BTreeMap::new(),
            are_branches_protected: false,
            fault: None,
            clock_ahead: 0,
            page_size: 100,
            created_tokens: 0,
            ledger: Vec::new(),
        }
    }
}

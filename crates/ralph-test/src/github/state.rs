//! The state of the server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::faults::{FaultRule, GitHubFault};
use super::repo::FakeRepo;
use crate::model_api::ReceivedRequest;

/// A token that the server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FakeGitHubToken {
    /// A classic token with these scopes.
    Classic(&'static str),
    /// A fine-grained token without access to these resources, such as `issues`, or without write access,
    /// such as `issues=write`.
    FineGrained(&'static [&'static str]),
    /// A token of an App's installation.
    Installation,
}

/// A request and its response.
#[derive(Debug, Clone)]
pub struct GitHubExchange {
    pub request: ReceivedRequest,
    pub status: u16,
    pub body: Value,
    /// Whether the request changed the state, even if its response was lost.
    pub is_mutation: bool,
    /// Whether the response was not sent.
    pub is_lost: bool,
}

impl GitHubExchange {
    /// Returns the method and the path with its query.
    pub fn operation(&self) -> &str {
        self.request.line.trim_end_matches(" HTTP/1.1")
    }
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
    /// Whether the plan of the account includes draft pull requests.
    pub are_drafts_supported: bool,
    /// A fault of every request until it is removed.
    pub fault: Option<GitHubFault>,
    /// Faults of some requests; the first rule that matches applies.
    pub rules: Vec<FaultRule>,
    /// By how many seconds the server's clock is ahead of this machine's.
    pub clock_ahead: i64,
    /// The largest number of entries on a page of a list.
    pub page_size: usize,
    /// Whether the logs of jobs require a permission that no token has.
    pub are_logs_denied: bool,
    /// The directory with the bare repositories `OWNER/NAME.git`, if the server has some.
    pub(super) git_root: Option<PathBuf>,
    pub(super) contents: BTreeMap<String, FakeRepo>,
    /// The end of the tokens that the server created.
    pub(super) token_ends: BTreeMap<String, Timestamp>,
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
            are_drafts_supported: true,
            fault: None,
            rules: Vec::new(),
            clock_ahead: 0,
            page_size: 100,
            are_logs_denied: false,
            git_root: None,
            contents: BTreeMap::new(),
            token_ends: BTreeMap::new(),
            created_tokens: 0,
            ledger: Vec::new(),
        }
    }
}

impl FakeGitHubState {
    /// Returns the pull requests, issues and checks of a repository.
    pub fn repo(&mut self, full_name: &str) -> &mut FakeRepo {
        let login = self.login.clone();
        let root = self.git_root.clone();
        let repo = self.contents.entry(full_name.to_owned());
        let repo = repo.or_insert_with(|| FakeRepo::new(full_name, &login));
        repo.bare = root.map(|root| root.join(format!("{full_name}.git")));
        repo
    }

    /// Gives a repository another name, like a user in its settings.
    ///
    /// # Panics
    /// If the repository does not exist.
    pub fn rename(&mut self, old: &str, new: &str) {
        let settings = self.repositories.remove(old).expect("the repository");
        self.repositories.insert(new.to_owned(), settings);
        if let Some(mut contents) = self.contents.remove(old) {
            new.clone_into(&mut contents.full_name);
            self.contents.insert(new.to_owned(), contents);
        }
        if let Some(root) = &self.git_root {
            let path = |name: &str| root.join(format!("{name}.git"));
            if path(old).exists() {
                std::fs::rename(path(old), path(new)).expect("the repository can be moved");
            }
        }
        self.renamed.insert(old.to_owned(), new.to_owned());
    }

    /// Makes a repository read-only.
    ///
    /// # Panics
    /// If the repository does not exist.
    pub fn archive(&mut self, full_name: &str) {
        let settings = self.repositories.get_mut(full_name);
        settings.expect("the repository")["archived"] = true.into();
    }

    pub(super) fn is_archived(&self, full_name: &str) -> bool {
        let settings = self.repositories.get(full_name);
        settings.is_some_and(|settings| settings["archived"] == true)
    }
}

//! A GitHub and a host for its repository `octo/app`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::id::CommitId;
use ralph_core::ports::{HostError, HostErrorKind, PullDraft, PullState, Scm as _, ScmError};
use ralph_core::ports::{IssueTracker, SourceHost};
use ralph_core::repo_address::RepoAddress;
use ralph_core::secret::{Redactor, Secret};
use ralph_providers::http::ProxySettings;
use ralph_providers::scm::github::{
    AppKey, GitHubClient, GitHubConnection, GitHubCredential, GitHubHost, GitHubTiming,
    GitHubTokenSource, TokenPace,
};
use ralph_test::{FakeGitHub, FakeGitHubToken, TestClock};

/// The time limit of an exchange, which only a test of that limit reaches.
const TIMEOUT: Duration = Duration::from_mins(5);

/// A commit that the fake uses as the head of every branch.
pub(crate) const COMMIT: &str = "6dcb09b5b57875f334f61aebed695e2e4193db5e";

/// A token, assembled at run time so that secret scanners ignore it.
pub(crate) fn token() -> String {
    format!("ghp_{}", "c4N4ry".repeat(6))
}

pub(crate) struct HostTest {
    pub(crate) github: FakeGitHub,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) redactor: Redactor,
    /// Appended to the address of the server.
    pub(crate) prefix: &'static str,
    pub(crate) timeout: Duration,
    pub(crate) source: Option<Arc<StoredToken>>,
    /// Shared by all hosts of the test.
    pace: TokenPace,
}

/// A token store.
pub(crate) struct StoredToken {
    pub(crate) token: Mutex<String>,
    pub(crate) reads: Mutex<usize>,
}

#[async_trait]
impl GitHubTokenSource for StoredToken {
    async fn read(&self) -> Option<Secret> {
        *self.reads.lock().unwrap() += 1;
        Some(Secret::new(self.token.lock().unwrap().clone()))
    }
}

impl HostTest {
    pub(crate) fn new() -> Self {
        let github = FakeGitHub::start().unwrap();
        github.add_token(&token(), FakeGitHubToken::Classic("repo"));
        Self {
            github,
            clock: TestClock::running(),
            redactor: Redactor::new(Vec::new()),
            prefix: "",
            timeout: TIMEOUT,
            source: None,
            pace: TokenPace::default(),
        }
    }

    /// Returns a host with the token.
    pub(crate) fn host(&self) -> GitHubHost {
        self.host_with(GitHubCredential::Token(Secret::new(token())))
    }

    /// Returns a host with the App of the server.
    pub(crate) fn app_host(&self) -> GitHubHost {
        let key = AppKey::parse(&Secret::new(FakeGitHub::APP_KEY.to_owned())).unwrap();
        self.host_with(GitHubCredential::App {
            id: "4711".into(),
            key,
            installation: None,
        })
    }

    pub(crate) fn host_with(&self, credential: GitHubCredential) -> GitHubHost {
        let RepoAddress::Remote(repo) = RepoAddress::parse("octo/app").unwrap() else {
            panic!("not a remote repository");
        };
        let api = format!("{}{}", self.github.url(), self.prefix);
        let source = self.source.clone();
        let connection = GitHubConnection {
            api: api.parse().unwrap(),
            network: &ProxySettings::default(),
            clock: self.clock.clone(),
            redactor: self.redactor.clone(),
            source: source.map(|source| source as Arc<dyn GitHubTokenSource>),
            pace: self.pace.clone(),
            timing: GitHubTiming::immediate(self.timeout),
        };
        let client = GitHubClient::new(connection, credential, repo).unwrap();
        GitHubHost::new(client, self.github.git_url("octo/app"))
    }
}

pub(crate) fn abilities(host: &GitHubHost) -> &dyn SourceHost {
    host.source_host().unwrap()
}

pub(crate) fn issues(host: &GitHubHost) -> &dyn IssueTracker {
    abilities(host).issues()
}

pub(crate) fn draft(title: &str, body: &str) -> PullDraft {
    PullDraft {
        run: "20260301-080000-0001".into(),
        head: "ralph/one".into(),
        base: "main".into(),
        commit: CommitId::parse(COMMIT).unwrap(),
        title: title.into(),
        body: body.into(),
        labels: vec!["ralph".into(), "size: s".into()],
        state: PullState::Draft,
    }
}

/// Returns the kind of a failed request.
#[track_caller]
pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, ScmError>) -> HostErrorKind {
    let error = result.unwrap_err();
    let ScmError::Host(HostError { kind, .. }) = error else {
        panic!("not an error of the host: {error}");
    };
    kind
}

//! The source host.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use ralph_core::id::CommitId;
use ralph_core::ports::{
    CheckReport, CommitStatus, GitCredential, GitLogin, HostAccess, HostBranch, HostCheck,
    HostError, HostErrorKind, HostRepository, IssueTracker, OpenPull, PullDraft, PullRequest,
    PullReview, Scm, ScmError, SourceHost,
};
use ralph_core::secret::Secret;
use tokio::sync::OnceCell;

use super::client::GitHubClient;
use super::operations::ReadableResource;
use super::permissions::{
    GrantedAccess, PermissionCheck, access_of_installation, access_of_scopes, compare,
    needed_names, probe_of,
};

/// The user of git with a token as the password.
const GIT_USER: &str = "x-access-token";

/// A repository on GitHub.
pub struct GitHubHost {
    pub(super) client: Arc<GitHubClient>,
    remote: String,
    identity: OnceCell<HostIdentity>,
}

/// The author of the host's comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostIdentity {
    /// A user.
    User(String),
    /// An App, whose login ends with `[bot]`.
    App(String),
    /// The token of an App that another program created; its login is unknown.
    UnknownApp,
}

impl GitHubHost {
    /// Creates a host for the repository of a client; git pushes to `remote`.
    pub fn new(client: GitHubClient, remote: String) -> Self {
        Self {
            client: Arc::new(client),
            remote,
            identity: OnceCell::new(),
        }
    }

    /// Returns the client, for example to show the rate limit.
    pub fn client(&self) -> &GitHubClient {
        &self.client
    }

    /// Returns the author of the host's comments.
    pub(super) async fn identity(&self) -> Result<&HostIdentity, HostError> {
        let identify = || async {
            if let Some(app) = self.client.app().await? {
                let name = app.slug.unwrap_or(app.name);
                return Ok(HostIdentity::App(format!("{name}[bot]")));
            }
            match self.client.user().await {
                Ok(user) => Ok(HostIdentity::User(user.value.login)),
                // The token of an installation is valid and has no user.
                Err(HostError {
                    kind: HostErrorKind::Forbidden { sso_url: None, .. },
                    ..
                }) => Ok(HostIdentity::UnknownApp),
                Err(error) => Err(error),
            }
        };
        self.identity.get_or_try_init(identify).await
    }

    async fn permissions(&self) -> Result<Vec<PermissionCheck>, HostError> {
        let reply = self.client.repository().await?;
        if let Some(granted) = self.client.installation_permissions().await? {
            return Ok(compare(|name| access_of_installation(&granted, name)));
        }
        if let Some(scopes) = &reply.scopes {
            let is_private = reply.value.private;
            return Ok(compare(|name| access_of_scopes(scopes, is_private, name)));
        }
        // GitHub does not disclose the permissions of a fine-grained token.
        let mut readable = BTreeMap::new();
        for name in needed_names() {
            let Some(resource) = probe_of(name) else {
                continue;
            };
            let branch = &reply.value.default_branch;
            let mut read = self.client.read(branch, resource).await;
            if resource == ReadableResource::Checks && read.as_ref().is_err_and(is_forbidden) {
                // A fine-grained token cannot read checks; the runs of workflows replace them.
                read = self
                    .client
                    .read(branch, ReadableResource::WorkflowRuns)
                    .await;
            }
            match read {
                Err(HostError {
                    kind: HostErrorKind::Forbidden { .. },
                    ..
                }) => {
                    readable.insert(name, GrantedAccess::None);
                }
                // A repository without commits has no such resource.
                Ok(())
                | Err(HostError {
                    kind: HostErrorKind::NotFound { .. } | HostErrorKind::Rejected { .. },
                    ..
                }) => {}
                Err(error) => return Err(error),
            }
        }
        let access = |name: &str| readable.get(name).copied();
        Ok(compare(|name| {
            access(name).unwrap_or(GrantedAccess::AtLeastRead)
        }))
    }
}

/// Provides the token of a client to git.
struct GitHubLogin(Arc<GitHubClient>);

#[async_trait]
impl GitCredential for GitHubLogin {
    async fn login(&self) -> Result<GitLogin, ScmError> {
        let token = self.0.token_for_git().await?;
        Ok(git_login(&token))
    }

    async fn renew(&self) -> Result<GitLogin, ScmError> {
        let token = self.0.renewed_token_for_git().await?;
        Ok(git_login(&token))
    }
}

fn git_login(token: &Secret) -> GitLogin {
    GitLogin {
        user: GIT_USER.to_owned(),
        password: Secret::new(token.expose().to_owned()),
    }
}

#[async_trait]
impl Scm for GitHubHost {
    fn name(&self) -> &'static str {
        "github"
    }

    fn remote(&self) -> &str {
        &self.remote
    }

    fn git_credential(&self) -> Option<Arc<dyn GitCredential>> {
        Some(Arc::new(GitHubLogin(self.client.clone())))
    }

    fn source_host(&self) -> Option<&dyn SourceHost> {
        Some(self)
    }

    async fn check_push(&self, branch: &str) -> Result<(), ScmError> {
        let found = SourceHost::branch(self, branch).await?;
        if !found.is_some_and(|branch| branch.protected) {
            return Ok(());
        }
        let kind = HostErrorKind::Protected {
            branch: branch.to_owned(),
        };
        Err(ScmError::Host(HostError {
            request: "the push".to_owned(),
            request_id: None,
            kind,
        }))
    }

    async fn find(&self, head: &str) -> Result<Option<PullRequest>, ScmError> {
        if let Some(open) = self.find_open(head, None).await? {
            return Ok(Some(open.summary()?));
        }
        self.last_pull_of(head).await
    }

    async fn open(&self, draft: &PullDraft) -> Result<PullRequest, ScmError> {
        Ok(self.open_or_adopt(draft).await?)
    }

    async fn update(&self, number: u64, draft: &PullDraft) -> Result<PullRequest, ScmError> {
        let current = self.read_pull(number).await?;
        Ok(self.apply(current, draft).await?)
    }
}

#[async_trait]
impl SourceHost for GitHubHost {
    async fn validate(&self) -> Result<HostAccess, ScmError> {
        let account = match self.identity().await? {
            HostIdentity::User(login) | HostIdentity::App(login) => login.clone(),
            HostIdentity::UnknownApp => "the App that created the token".to_owned(),
        };
        let permissions = self.permissions().await?;
        let missing = permissions.iter();
        let missing = missing.filter(|check| check.is_missing() && !check.is_optional);
        Ok(HostAccess {
            account,
            missing: missing
                .map(|check| format!("{}={}", check.name, check.needs.as_str()))
                .collect(),
        })
    }

    async fn repository(&self) -> Result<HostRepository, ScmError> {
        let found = self.client.repository().await?.value;
        Ok(HostRepository {
            full_name: found.full_name,
            default_branch: found.default_branch,
            private: found.private,
            archived: found.archived,
            can_push: found.permissions.map(|role| role.push),
        })
    }

    async fn branch(&self, name: &str) -> Result<Option<HostBranch>, ScmError> {
        match self.client.branch(&self.client.repo(), name).await {
            Ok(branch) => Ok(Some(HostBranch {
                head: parse_commit(&branch.value.commit.sha)?,
                protected: branch.value.protected,
            })),
            Err(HostError {
                kind: HostErrorKind::NotFound { .. },
                ..
            }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn pull(&self, number: u64) -> Result<PullRequest, ScmError> {
        Ok(self.read_pull(number).await?.summary()?)
    }

    async fn last_pull_of(&self, head: &str) -> Result<Option<PullRequest>, ScmError> {
        let last = self.find_last(head).await?;
        Ok(last.map(|pull| pull.summary()).transpose()?)
    }

    async fn open_pulls(&self) -> Result<Vec<OpenPull>, ScmError> {
        Ok(self.list_open_pulls().await?)
    }

    async fn reviews(&self, number: u64) -> Result<Vec<PullReview>, ScmError> {
        Ok(self.list_reviews(number).await?)
    }

    async fn checks(&self, commit: &CommitId) -> Result<CheckReport, ScmError> {
        Ok(self.read_checks(commit).await?)
    }

    async fn failure_output(
        &self,
        check: &HostCheck,
        max_bytes: usize,
    ) -> Result<String, ScmError> {
        Ok(self.read_failure(check, max_bytes).await?)
    }

    async fn set_status(&self, commit: &CommitId, status: &CommitStatus) -> Result<(), ScmError> {
        Ok(self.write_status(commit, status).await?)
    }

    fn issues(&self) -> &dyn IssueTracker {
        self
    }
}

/// Parses a commit of a response.
pub(super) fn parse_commit(sha: &str) -> Result<CommitId, HostError> {
    CommitId::parse(sha).ok_or_else(|| HostError {
        request: "the response".to_owned(),
        request_id: None,
        kind: HostErrorKind::Unexpected {
            why: "a commit has no valid id".to_owned(),
        },
    })
}

/// Returns whether the credential does not permit a request.
pub(super) fn is_forbidden(error: &HostError) -> bool {
    matches!(error.kind, HostErrorKind::Forbidden { .. })
}

/// Returns whether a request may have been performed although it failed.
pub(super) fn is_ambiguous(error: &HostError) -> bool {
    matches!(error.kind, HostErrorKind::Unavailable { .. })
}

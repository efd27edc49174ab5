//! The client: a server, a repository on it and a credential.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use ralph_core::ports::Clock;
use ralph_core::repo_address::RemoteRepo;
use ralph_core::secret::{Redactor, Secret};
use tokio::sync::Mutex;
use url::Url;

use super::app_key::AppKey;
use super::error::{GitHubError, GitHubErrorKind};
use super::operations::{
    GitHubBranch, GitHubInstallation, GitHubRepository, GitHubUser, NewInstallationToken,
    ReadableResource, RegisteredApp,
};
use super::transport::{GitHubReply, Transport};
use crate::http::{ProxyAddressError, ProxySettings};

/// How long before its end a token is replaced.
const REFRESH_MARGIN: SignedDuration = SignedDuration::from_mins(10);

/// A credential for the API.
#[derive(Debug)]
pub enum GitHubCredential {
    /// A token of a user, or one that another program created for an App.
    Token(Secret),
    /// A GitHub App, whose tokens the client creates.
    App {
        /// The id or the client id.
        id: String,
        key: AppKey,
        /// The installation; `None` selects the one of the repository.
        installation: Option<u64>,
    },
}

/// The parts of a client that do not depend on the credential.
pub struct GitHubConnection<'a> {
    /// The address of the API, such as `https://api.github.com`.
    pub api: Url,
    pub network: &'a ProxySettings,
    pub clock: Arc<dyn Clock>,
    /// Learns the tokens that the client creates.
    pub redactor: Redactor,
}

/// A client for one repository.
pub struct GitHubClient {
    transport: Transport,
    credential: GitHubCredential,
    repo: RemoteRepo,
    redactor: Redactor,
    installation_token: Mutex<Option<InstallationToken>>,
}

/// The current token of an App's installation.
struct InstallationToken {
    token: Arc<Secret>,
    expires: Timestamp,
    permissions: BTreeMap<String, String>,
}

impl GitHubClient {
    /// Creates a client for a repository.
    pub fn new(
        connection: GitHubConnection<'_>,
        credential: GitHubCredential,
        repo: RemoteRepo,
    ) -> Result<Self, ProxyAddressError> {
        let GitHubConnection {
            api,
            network,
            clock,
            redactor,
        } = connection;
        Ok(Self {
            transport: Transport::new(api, network, clock)?,
            credential,
            repo,
            redactor,
            installation_token: Mutex::new(None),
        })
    }

    /// Returns the login of the token's user. Fails with `Forbidden` for the token of an App.
    pub async fn user(&self) -> Result<GitHubReply<GitHubUser>, GitHubError> {
        let url = self.transport.url(&["user"]);
        self.transport.get(url, &*self.token().await?).await
    }

    /// Returns the App of the credential; `None` for a token.
    pub async fn app(&self) -> Result<Option<RegisteredApp>, GitHubError> {
        let GitHubCredential::App { id, key, .. } = &self.credential else {
            return Ok(None);
        };
        let url = self.transport.url(&["app"]);
        let app = self.transport.get(url, &self.sign(id, key)?).await?;
        Ok(Some(app.value))
    }

    /// Returns the accounts that have installed the App; none for a token.
    pub async fn installed_for(&self) -> Result<Vec<String>, GitHubError> {
        let GitHubCredential::App { id, key, .. } = &self.credential else {
            return Ok(Vec::new());
        };
        let url = self.transport.url(&["app", "installations"]);
        let credential = self.sign(id, key)?;
        let installations: Vec<GitHubInstallation> = self.transport.list(url, &credential).await?;
        let accounts = installations.into_iter().filter_map(|each| each.account);
        Ok(accounts.filter_map(|account| account.login).collect())
    }

    /// Returns the permissions of the App's installation by name, such as `contents: write`; `None`
    /// for a token.
    pub async fn installation_permissions(
        &self,
    ) -> Result<Option<BTreeMap<String, String>>, GitHubError> {
        self.token().await?;
        let current = self.installation_token.lock().await;
        Ok(current.as_ref().map(|token| token.permissions.clone()))
    }

    /// Returns the repository under its current name.
    pub async fn repository(&self) -> Result<GitHubReply<GitHubRepository>, GitHubError> {
        let url = self.repo_url(&self.repo, &[]);
        self.transport.get(url, &*self.token().await?).await
    }

    /// Returns a branch of a repository on the same server.
    pub async fn branch(
        &self,
        repo: &RemoteRepo,
        branch: &str,
    ) -> Result<GitHubReply<GitHubBranch>, GitHubError> {
        let url = self.repo_url(repo, &["branches", branch]);
        self.transport.get(url, &*self.token().await?).await
    }

    /// Reads one entry of a resource, which shows whether the credential may read it.
    pub async fn read(
        &self,
        repo: &RemoteRepo,
        branch: &str,
        resource: ReadableResource,
    ) -> Result<(), GitHubError> {
        let mut url = self.repo_url(repo, &resource.path(branch));
        if resource.is_list() {
            url.query_pairs_mut().append_pair("per_page", "1");
        }
        let token = self.token().await?;
        let _read: GitHubReply<serde_json::Value> = self.transport.get(url, &token).await?;
        Ok(())
    }

    fn repo_url(&self, repo: &RemoteRepo, rest: &[&str]) -> Url {
        let parts = [&["repos", repo.owner(), repo.name()], rest].concat();
        self.transport.url(&parts)
    }

    /// Returns the token for a request. That of an App is created first, and replaced before it
    /// expires.
    async fn token(&self) -> Result<TokenRef<'_>, GitHubError> {
        let (id, key, installation) = match &self.credential {
            GitHubCredential::Token(token) => return Ok(TokenRef::Own(token)),
            GitHubCredential::App {
                id,
                key,
                installation,
            } => (id, key, *installation),
        };
        let mut current = self.installation_token.lock().await;
        let refresh_at = self.transport.now().saturating_add(REFRESH_MARGIN);
        let refresh_at = refresh_at.unwrap_or(Timestamp::MAX);
        if let Some(valid) = current.as_ref().filter(|token| token.expires > refresh_at) {
            return Ok(TokenRef::Created(valid.token.clone()));
        }
        let signature = self.sign(id, key)?;
        let created = self.create_token(&signature, installation).await?;
        let token = created.token.clone();
        *current = Some(created);
        Ok(TokenRef::Created(token))
    }

    async fn create_token(
        &self,
        signature: &Secret,
        installation: Option<u64>,
    ) -> Result<InstallationToken, GitHubError> {
        let installation = match installation {
            Some(installation) => installation,
            None => self.find_installation(signature).await?.id,
        };
        let id = installation.to_string();
        let url = self
            .transport
            .url(&["app", "installations", &id, "access_tokens"]);
        let created: GitHubReply<NewInstallationToken> =
            self.transport.post(&url, signature).await?;
        let NewInstallationToken {
            token,
            expires_at,
            permissions,
        } = created.value;
        self.redactor
            .learn("GitHub installation token", Secret::new(token.clone()));
        Ok(InstallationToken {
            token: Arc::new(Secret::new(token)),
            expires: expires_at,
            permissions,
        })
    }

    async fn find_installation(
        &self,
        signature: &Secret,
    ) -> Result<GitHubInstallation, GitHubError> {
        let url = self.repo_url(&self.repo, &["installation"]);
        Ok(self.transport.get(url, signature).await?.value)
    }

    fn sign(&self, id: &str, key: &AppKey) -> Result<Secret, GitHubError> {
        key.sign(id, self.transport.now()).map_err(|error| {
            tracing::warn!(%error, "cannot sign a request of a GitHub App");
            GitHubError {
                request: "the signature of a request".to_owned(),
                request_id: None,
                kind: GitHubErrorKind::Signature,
            }
        })
    }
}

/// A token of the user, or one that the client created.
enum TokenRef<'a> {
    Own(&'a Secret),
    Created(Arc<Secret>),
}

impl std::ops::Deref for TokenRef<'_> {
    type Target = Secret;

    fn deref(&self) -> &Secret {
        match self {
            Self::Own(token) => token,
            Self::Created(token) => token,
        }
    }
}

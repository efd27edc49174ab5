//! The client: a server, a repository on it and a credential.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use hyper::Method;
use ralph_core::ports::{Clock, HostError, HostErrorKind};
use ralph_core::repo_address::RemoteRepo;
use ralph_core::secret::{Redactor, Secret};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use url::Url;

use super::app_key::AppKey;
use super::error::{GraphQlError, kind_of_graphql};
use super::operations::{
    GitHubBranch, GitHubInstallation, GitHubRepository, GitHubUser, NewInstallationToken,
    ReadableResource, RegisteredApp,
};
use super::pace::{GitHubTiming, TokenPace};
use super::response::{GitHubReply, ReadResponse};
use super::token::{GitHubCredential, GitHubTokenSource, HeldToken};
use super::transport::{ApiRequest, RequestEffect, Transport};
use crate::http::{ProxyAddressError, ProxySettings};

/// The most pages of a list, each of 100 entries.
pub(super) const MAX_PAGES: usize = 10;

/// The parts of a client that do not depend on the credential.
pub struct GitHubConnection<'a> {
    /// The address of the API, such as `https://api.github.com`.
    pub api: Url,
    pub network: &'a ProxySettings,
    pub clock: Arc<dyn Clock>,
    /// Learns the tokens that the client creates or reads.
    pub redactor: Redactor,
    /// Reads the token again after the server rejected it.
    pub source: Option<Arc<dyn GitHubTokenSource>>,
    /// Shared by all clients of a process.
    pub pace: TokenPace,
    pub timing: GitHubTiming,
}

/// A client for one repository.
pub struct GitHubClient {
    pub(super) transport: Transport,
    credential: GitHubCredential,
    source: Option<Arc<dyn GitHubTokenSource>>,
    /// The repository under its last known name.
    repo: RwLock<RemoteRepo>,
    redactor: Redactor,
    current: Mutex<Option<HeldToken>>,
}

/// The response to a GraphQL document.
#[derive(Deserialize)]
struct GraphQlReply {
    data: Option<Value>,
    #[serde(default)]
    errors: Vec<GraphQlError>,
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
            source,
            pace,
            timing,
        } = connection;
        Ok(Self {
            transport: Transport::new(api, network, clock, timing, pace)?,
            credential,
            source,
            repo: RwLock::new(repo),
            redactor,
            current: Mutex::new(None),
        })
    }

    /// Returns the login of the token's user. Fails with `Forbidden` for the token of an App.
    pub async fn user(&self) -> Result<GitHubReply<GitHubUser>, HostError> {
        self.get(self.transport.url(&["user"])).await
    }

    /// Returns the App of the credential; `None` for a token.
    pub async fn app(&self) -> Result<Option<RegisteredApp>, HostError> {
        let url = self.transport.url(&["app"]);
        self.get_as_app(url).await
    }

    /// Returns the accounts that have installed the App; none for a token.
    pub async fn installed_for(&self) -> Result<Vec<String>, HostError> {
        let mut url = self.transport.url(&["app", "installations"]);
        url.query_pairs_mut().append_pair("per_page", "100");
        let mut accounts = Vec::new();
        let mut next = Some(url);
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else {
                break;
            };
            let Some(signature) = self.signature()? else {
                break;
            };
            let request = ApiRequest::get(url);
            let response = self.transport.send(&request, &signature).await?;
            let page: GitHubReply<Vec<GitHubInstallation>> = self.parse(&request, &response)?;
            let logins = page.value.into_iter().filter_map(|each| each.account);
            accounts.extend(logins.filter_map(|account| account.login));
            next = page.next_page;
        }
        Ok(accounts)
    }

    /// Returns the permissions of the App's installation by name, such as `contents: write`; `None`
    /// for a token.
    pub async fn installation_permissions(
        &self,
    ) -> Result<Option<BTreeMap<String, String>>, HostError> {
        match &self.credential {
            GitHubCredential::Token(_) => Ok(None),
            GitHubCredential::App { .. } => Ok(Some(self.held_token().await?.permissions)),
        }
    }

    /// Returns the repository under its current name, which later requests use.
    pub async fn repository(&self) -> Result<GitHubReply<GitHubRepository>, HostError> {
        let reply: GitHubReply<GitHubRepository> = self.get(self.repo_url(&[])).await?;
        let known = self.repo();
        match known.renamed(&reply.value.full_name) {
            Ok(renamed) if renamed != known => {
                let repo = self.repo.write();
                *repo.unwrap_or_else(PoisonError::into_inner) = renamed;
            }
            // An invalid name is reported by the caller, which reads it, too.
            Ok(_) | Err(_) => {}
        }
        Ok(reply)
    }

    /// Returns a branch of a repository on the same server.
    pub async fn branch(
        &self,
        repo: &RemoteRepo,
        branch: &str,
    ) -> Result<GitHubReply<GitHubBranch>, HostError> {
        let parts = ["repos", repo.owner(), repo.name(), "branches", branch];
        self.get(self.transport.url(&parts)).await
    }

    /// Reads one entry of a resource, which shows whether the credential may read it.
    pub async fn read(&self, branch: &str, resource: ReadableResource) -> Result<(), HostError> {
        let mut url = self.repo_url(&resource.path(branch));
        if resource.is_list() {
            url.query_pairs_mut().append_pair("per_page", "1");
        }
        let _read: GitHubReply<Value> = self.get(url).await?;
        Ok(())
    }

    /// Returns the repository under its last known name.
    pub(super) fn repo(&self) -> RemoteRepo {
        let repo = self.repo.read();
        repo.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the URL of a path below the repository.
    pub(super) fn repo_url(&self, rest: &[&str]) -> Url {
        let repo = self.repo();
        let parts = [&["repos", repo.owner(), repo.name()], rest].concat();
        self.transport.url(&parts)
    }

    /// Reads an object.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        url: Url,
    ) -> Result<GitHubReply<T>, HostError> {
        let request = ApiRequest::get(url);
        let response = self.call(&request).await?;
        self.parse(&request, &response)
    }

    /// Returns all entries of a list, page by page, at most 1000.
    pub(super) async fn list<T: DeserializeOwned>(&self, url: Url) -> Result<Vec<T>, HostError> {
        let entries = |page: Vec<T>| page;
        self.pages(url, RequestEffect::Read, entries).await
    }

    /// Like [`Self::list`], without remembered pages: the entries decide whether something is created.
    pub(super) async fn list_fresh<T: DeserializeOwned>(
        &self,
        url: Url,
    ) -> Result<Vec<T>, HostError> {
        let entries = |page: Vec<T>| page;
        self.pages(url, RequestEffect::ReadFresh, entries).await
    }

    /// Returns the entries of all pages of a list, at most 1000. `entries` returns those of a page.
    pub(super) async fn pages<P: DeserializeOwned, T>(
        &self,
        mut url: Url,
        effect: RequestEffect,
        entries: impl Fn(P) -> Vec<T>,
    ) -> Result<Vec<T>, HostError> {
        url.query_pairs_mut().append_pair("per_page", "100");
        let mut all = Vec::new();
        let mut next = Some(url);
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else {
                return Ok(all);
            };
            let request = ApiRequest {
                effect,
                ..ApiRequest::get(url)
            };
            let response = self.call(&request).await?;
            let page: GitHubReply<P> = self.parse(&request, &response)?;
            all.extend(entries(page.value));
            next = page.next_page;
        }
        match next {
            // Something would be created again, because its first copy is on a later page.
            Some(url) if effect == RequestEffect::ReadFresh => {
                let why = format!("the list has more than {MAX_PAGES} pages");
                let kind = HostErrorKind::Unexpected { why };
                Err(self.transport.error(&ApiRequest::get(url), None, kind))
            }
            Some(_) | None => Ok(all),
        }
    }

    /// Changes something, once.
    pub(super) async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        body: Option<Value>,
    ) -> Result<T, HostError> {
        let request = ApiRequest::change(method, url, body);
        let response = self.call(&request).await?;
        Ok(self.parse(&request, &response)?.value)
    }

    /// Executes a GraphQL document, and returns its data.
    pub(super) async fn graphql(
        &self,
        document: &str,
        variables: Value,
        effect: RequestEffect,
    ) -> Result<Value, HostError> {
        let request = ApiRequest {
            method: Method::POST,
            url: self.transport.graphql_url(),
            body: Some(json!({"query": document, "variables": variables})),
            effect,
        };
        let response = self.call(&request).await?;
        let reply: GraphQlReply = self.parse(&request, &response)?.value;
        if let Some(kind) = kind_of_graphql(&reply.errors, &response.headers, self.transport.now())
        {
            if let HostErrorKind::RateLimited { until } = kind {
                self.transport.set_limit(&*self.token().await?, until);
            }
            return Err(self.transport.error(&request, Some(&response), kind));
        }
        reply.data.ok_or_else(|| {
            let why = "the response has no data".to_owned();
            let kind = HostErrorKind::Unexpected { why };
            self.transport.error(&request, Some(&response), kind)
        })
    }

    fn parse<T: DeserializeOwned>(
        &self,
        request: &ApiRequest,
        response: &ReadResponse,
    ) -> Result<GitHubReply<T>, HostError> {
        let parsed = response.parse(&request.url);
        parsed.map_err(|kind| self.transport.error(request, Some(response), kind))
    }

    /// Sends a request with the current token. After a rejection, another token is tried once.
    pub(super) async fn call(&self, request: &ApiRequest) -> Result<ReadResponse, HostError> {
        let token = self.token().await?;
        let result = self.transport.send(request, &token).await;
        let is_rejected = |error: &HostError| {
            matches!(
                error.kind,
                HostErrorKind::Unauthorized { .. } | HostErrorKind::WrongClock { .. }
            )
        };
        match result {
            Err(error) if is_rejected(&error) => match self.replace(&token).await? {
                Some(other) => self.transport.send(request, &other).await,
                None => Err(error),
            },
            result => result,
        }
    }

    /// Returns the current token. That of an App is created first, and replaced before it expires.
    pub(super) async fn token(&self) -> Result<Arc<Secret>, HostError> {
        Ok(self.held_token().await?.token)
    }

    /// Returns the token for git: the user may have stored another one since the last request.
    pub(super) async fn token_for_git(&self) -> Result<Arc<Secret>, HostError> {
        let token = self.token().await?;
        if let Some(source) = &self.source
            && let Some(other) = source.read().await
            && other.expose() != token.expose()
        {
            return Ok(self.hold(other).await);
        }
        Ok(token)
    }

    /// Returns the token for git after the host rejected one: another one if there is one.
    pub(super) async fn renewed_token_for_git(&self) -> Result<Arc<Secret>, HostError> {
        let token = self.token().await?;
        Ok(self.replace(&token).await?.unwrap_or(token))
    }

    async fn held_token(&self) -> Result<HeldToken, HostError> {
        let mut current = self.current.lock().await;
        let now = self.transport.now();
        if let Some(valid) = current.as_ref().filter(|token| token.is_valid(now)) {
            return Ok(valid.clone());
        }
        let held = match &self.credential {
            GitHubCredential::Token(token) => {
                HeldToken::of_user(Secret::new(token.expose().to_owned()))
            }
            GitHubCredential::App {
                id,
                key,
                installation,
            } => {
                let signature = self.sign(id, key)?;
                self.create_token(&signature, *installation).await?
            }
        };
        *current = Some(held.clone());
        Ok(held)
    }

    /// Returns another token than the rejected one, if there is one.
    async fn replace(&self, rejected: &Secret) -> Result<Option<Arc<Secret>>, HostError> {
        let is_other = |token: &HeldToken| token.token.expose() != rejected.expose();
        let mut current = self.current.lock().await;
        // Another request may have replaced it already.
        if let Some(other) = current.as_ref().filter(|token| is_other(token)) {
            return Ok(Some(other.token.clone()));
        }
        match (&self.credential, &self.source) {
            (GitHubCredential::App { .. }, _) => {
                *current = None;
                drop(current);
                self.transport.forget();
                self.token().await.map(Some)
            }
            (GitHubCredential::Token(_), None) => Ok(None),
            (GitHubCredential::Token(_), Some(source)) => {
                drop(current);
                match source.read().await {
                    Some(other) if other.expose() != rejected.expose() => {
                        Ok(Some(self.hold(other).await))
                    }
                    Some(_) | None => Ok(None),
                }
            }
        }
    }

    /// Uses a token that the source returned from now on.
    async fn hold(&self, token: Secret) -> Arc<Secret> {
        let copy = Secret::new(token.expose().to_owned());
        self.redactor.learn("GitHub token", copy);
        self.transport.forget();
        let held = HeldToken::of_user(token);
        let token = held.token.clone();
        *self.current.lock().await = Some(held);
        token
    }

    async fn create_token(
        &self,
        signature: &Secret,
        installation: Option<u64>,
    ) -> Result<HeldToken, HostError> {
        let installation = match installation {
            Some(installation) => installation,
            None => self.find_installation(signature).await?.id,
        };
        let id = installation.to_string();
        let parts = ["app", "installations", &id, "access_tokens"];
        let request = ApiRequest {
            effect: RequestEffect::CreateToken,
            ..ApiRequest::change(Method::POST, self.transport.url(&parts), None)
        };
        let response = self.transport.send(&request, signature).await?;
        let created: GitHubReply<NewInstallationToken> = self.parse(&request, &response)?;
        let NewInstallationToken {
            token,
            expires_at,
            permissions,
        } = created.value;
        self.redactor
            .learn("GitHub installation token", Secret::new(token.clone()));
        Ok(HeldToken {
            token: Arc::new(Secret::new(token)),
            expires: Some(expires_at),
            permissions,
        })
    }

    async fn find_installation(&self, signature: &Secret) -> Result<GitHubInstallation, HostError> {
        let request = ApiRequest::get(self.repo_url(&["installation"]));
        let response = self.transport.send(&request, signature).await?;
        Ok(self.parse(&request, &response)?.value)
    }

    async fn get_as_app<T: DeserializeOwned>(&self, url: Url) -> Result<Option<T>, HostError> {
        let Some(signature) = self.signature()? else {
            return Ok(None);
        };
        let request = ApiRequest::get(url);
        let response = self.transport.send(&request, &signature).await?;
        Ok(Some(self.parse(&request, &response)?.value))
    }

    /// Returns the credential of the App itself; `None` for a token.
    fn signature(&self) -> Result<Option<Secret>, HostError> {
        match &self.credential {
            GitHubCredential::Token(_) => Ok(None),
            GitHubCredential::App { id, key, .. } => self.sign(id, key).map(Some),
        }
    }

    fn sign(&self, id: &str, key: &AppKey) -> Result<Secret, HostError> {
        key.sign(id, self.transport.now()).map_err(|error| {
            tracing::warn!(%error, "cannot sign a request of a GitHub App");
            let why = "the key of the App cannot sign a request".to_owned();
            HostError {
                request: "the signature of a request".to_owned(),
                request_id: None,
                kind: HostErrorKind::Unexpected { why },
            }
        })
    }
}

//! Finds the credential for GitHub: the first place that has one wins.

use std::fmt;

use ralph_core::parse_value;
use ralph_core::repo_address::RemoteRepo;
use ralph_core::secret::Secret;

use crate::app::App;
use crate::config::VariableLayer;
use crate::error::AppError;
use crate::providers::github::{AppKey, GitHubCredential};
use crate::tokens::stores::{GhLogin, TokenStoreKind, gh_login};
use crate::tokens::{AgentAuth, AgentName, AuthMode, AuthToken, BaseUrl, GITHUB_API, TokenSlot};

const APP_ID: &str = "GITHUB_APP_ID";
const APP_KEY: &str = "GITHUB_APP_PRIVATE_KEY_PEM";
const APP_INSTALLATION: &str = "GITHUB_APP_INSTALLATION_ID";

/// The variables with a token, in the order of the search.
const TOKEN_VARIABLES: [&str; 3] = ["GITHUB_PAT", "GITHUB_TOKEN", "GH_TOKEN"];

/// A credential with its source.
#[derive(Debug)]
pub(super) struct FoundCredential {
    pub(super) credential: GitHubCredential,
    pub(super) kind: CredentialKind,
    pub(super) source: CredentialSource,
}

/// The kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CredentialKind {
    /// A GitHub App.
    App,
    /// A classic personal access token.
    ClassicToken,
    /// A fine-grained personal access token.
    FineGrainedToken,
    /// A token of an OAuth app, such as `gh`.
    OauthToken,
    /// A token that another program created for an App's installation.
    InstallationToken,
    /// A token without a known prefix.
    OtherToken,
}

impl CredentialKind {
    /// Returns whether the role of a user in a repository limits the credential.
    pub(super) fn has_role(self) -> bool {
        match self {
            Self::App | Self::InstallationToken => false,
            Self::ClassicToken | Self::FineGrainedToken | Self::OauthToken | Self::OtherToken => {
                true
            }
        }
    }

    fn of_token(token: &Secret) -> Self {
        let prefixes = [
            ("ghp_", Self::ClassicToken),
            ("github_pat_", Self::FineGrainedToken),
            ("gho_", Self::OauthToken),
            ("ghu_", Self::OauthToken),
            ("ghs_", Self::InstallationToken),
        ];
        let known = prefixes.into_iter();
        let mut known = known.filter(|(prefix, _)| token.expose().starts_with(prefix));
        known.next().map_or(Self::OtherToken, |(_, kind)| kind)
    }
}

impl fmt::Display for CredentialKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::App => "GitHub App",
            Self::ClassicToken => "personal access token (classic)",
            Self::FineGrainedToken => "fine-grained personal access token",
            Self::OauthToken => "OAuth token",
            Self::InstallationToken => "installation token",
            Self::OtherToken => "token",
        })
    }
}

/// The source of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CredentialSource {
    /// A variable of the process.
    Variable(&'static str),
    /// A variable of the `.env` in the working directory.
    Dotenv(&'static str),
    /// The token store.
    Stored(TokenStoreKind),
    /// The login of `gh`.
    Gh,
}

impl fmt::Display for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Dotenv(name) => write!(f, "{name} in .env"),
            Self::Stored(store) => write!(f, "the token store ({store})"),
            Self::Gh => f.write_str("gh auth token"),
        }
    }
}

/// Returns the credential for an API, or an error that lists the searched places. A credential without
/// an address of its own is only used for hosts that the user chose.
pub(super) async fn find_credential(
    repo: &RemoteRepo,
    api: &BaseUrl,
    app: &App,
) -> Result<FoundCredential, AppError> {
    let binding = HostBinding::find(repo, api, app)?;
    if binding == HostBinding::Chosen {
        for layer in [VariableLayer::Process, VariableLayer::WithDotenv] {
            if let Some(found) = find_in_environment(layer, app)? {
                return Ok(found);
            }
        }
        if let Some(name) = partial_app(app) {
            return Err(incomplete_app(name));
        }
    }
    if binding != HostBinding::OtherApi
        && let Some(found) = find_stored(api, app).await?
    {
        return Ok(found);
    }
    let gh = match gh_login(app.search_path(), repo.host()).await {
        Ok(GhLogin::Token(token)) => {
            return found_token(token, CredentialSource::Gh, app);
        }
        Ok(GhLogin::NotInstalled) => "which is not installed".to_owned(),
        Ok(GhLogin::LoggedOut) => format!("which has no login for {}", repo.host()),
        Err(error) => error.to_string(),
    };
    let what = format!("no GitHub credential was found for `{}`", repo.host());
    if binding != HostBinding::Chosen {
        let own = format!("https://{}/api/v3", repo.authority());
        return Err(AppError::runtime(
            what,
            format!(
                "the credentials of the environment and of `.env` are for github.com and for the host of GITHUB_API_URL or of your own `github.api_url`; searched the token store (for {own}) and `gh`, {gh}"
            ),
            format!("set GITHUB_API_URL={own} if you trust this host"),
        ));
    }
    Err(AppError::runtime(
        what,
        format!(
            "searched {APP_ID} with {APP_KEY}, {} in the environment and in `.env`, the token store (for {api}), and `gh`, {gh}",
            TOKEN_VARIABLES.join(", ")
        ),
        format!("run `{}`, or set GITHUB_PAT", store_command(api)),
    ))
}

/// Whether the user chose the host of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostBinding {
    /// It is github.com, the host of the user's API address, or a host that the user typed.
    Chosen,
    /// Only a file of a repository names it. The API is on the same host.
    Unchosen,
    /// Only a file of a repository names it, and the API of the user's settings is on another host. A
    /// token for that API must not reach this host.
    OtherApi,
}

impl HostBinding {
    fn find(repo: &RemoteRepo, api: &BaseUrl, app: &App) -> Result<Self, AppError> {
        // A repository's files cannot set these addresses.
        let is_configured = app.environment().github_api_url().is_some()
            || !app.settings()?.github.api_url.is_empty();
        let prefixed = format!("api.{}", repo.host());
        let is_same_host = api.host() == repo.host() || api.host() == prefixed;
        let is_chosen = repo.is_on_github_com()
            || (is_configured && is_same_host)
            || app.typed_hosts().contains(repo);
        Ok(match (is_chosen, is_same_host) {
            (true, _) => Self::Chosen,
            (false, true) => Self::Unchosen,
            (false, false) => Self::OtherApi,
        })
    }
}

/// Returns the command that stores a token for an API.
pub(super) fn store_command(api: &BaseUrl) -> String {
    let command = format!("ralph store-token --agent {}", AgentAuth::GITHUB);
    if api.as_str() == GITHUB_API {
        command
    } else {
        format!("{command} --base-url {api}")
    }
}

fn find_in_environment(
    layer: VariableLayer,
    app: &App,
) -> Result<Option<FoundCredential>, AppError> {
    let environment = app.environment();
    let variable = |name| environment.github_variable(name, layer);
    let source = |name| {
        if environment.is_from_dotenv(name) {
            CredentialSource::Dotenv(name)
        } else {
            CredentialSource::Variable(name)
        }
    };
    if let (Some(id), Some(pem)) = (variable(APP_ID), variable(APP_KEY)) {
        let credential = app_credential(id, pem, variable(APP_INSTALLATION))?;
        return Ok(Some(FoundCredential {
            credential,
            kind: CredentialKind::App,
            source: source(APP_ID),
        }));
    }
    for name in TOKEN_VARIABLES {
        if let Some(token) = variable(name) {
            return found_token(Secret::new(token.trim().to_owned()), source(name), app).map(Some);
        }
    }
    Ok(None)
}

fn app_credential(
    id: &str,
    pem: &str,
    installation: Option<&str>,
) -> Result<GitHubCredential, AppError> {
    let is_id = |text: &str| {
        text.len() <= 64
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
    };
    if !is_id(id) {
        return Err(AppError::usage(
            format!("{APP_ID} is not valid"),
            "it is neither the id nor the client id of an App",
            "copy it from the page of the App's settings",
        ));
    }
    let key = AppKey::parse(&Secret::new(pem.to_owned())).map_err(|error| {
        AppError::usage(
            format!("{APP_KEY} is not valid"),
            error.to_string(),
            "set it to the content of the `.pem` file from the page of the App's settings",
        )
    })?;
    let number = |text: &str| {
        parse_value(text).ok_or_else(|| {
            AppError::usage(
                format!("{APP_INSTALLATION} is not valid"),
                "it is not a number",
                "copy it from the URL of the installation, or unset it",
            )
        })
    };
    Ok(GitHubCredential::App {
        id: id.to_owned(),
        key,
        installation: installation.map(number).transpose()?,
    })
}

/// Returns the variable of an App that is set without the other one.
fn partial_app(app: &App) -> Option<&'static str> {
    let is_set = |name| {
        let value = app
            .environment()
            .github_variable(name, VariableLayer::WithDotenv);
        value.is_some()
    };
    [APP_ID, APP_KEY].into_iter().find(|name| is_set(name))
}

fn incomplete_app(name: &str) -> AppError {
    let other = if name == APP_ID { APP_KEY } else { APP_ID };
    AppError::usage(
        "the GitHub App has no complete credential",
        format!("{name} is set, but {other} is not"),
        format!("set {other}, or unset {name}"),
    )
}

/// Returns the stored token for an API. A token without an address is for github.com only.
async fn find_stored(api: &BaseUrl, app: &App) -> Result<Option<FoundCredential>, AppError> {
    let Ok(agent) = AgentName::parse(AgentAuth::GITHUB) else {
        return Ok(None);
    };
    let mode = if api.as_str() == GITHUB_API {
        AuthMode::ApiKey
    } else {
        AuthMode::Gateway
    };
    let slot = TokenSlot { agent, mode };
    let search = app.tokens_read_only()?.search_valid_stored(&[slot]).await?;
    let Some(found) = search.found else {
        return Ok(None);
    };
    let is_for_api = match &found.token.base_url {
        Some(address) => address == api,
        None => mode == AuthMode::ApiKey,
    };
    if !is_for_api {
        return Ok(None);
    }
    let source = CredentialSource::Stored(found.store);
    found_token(found.token.secret, source, app).map(Some)
}

fn found_token(
    token: Secret,
    source: CredentialSource,
    app: &App,
) -> Result<FoundCredential, AppError> {
    let token = AuthToken::from_secret(token).map_err(|error| {
        AppError::usage(
            format!("the GitHub token of {source} is not valid"),
            error.to_string(),
            "copy the token again",
        )
    })?;
    app.add_secret("GitHub token", &token.secret);
    Ok(FoundCredential {
        kind: CredentialKind::of_token(&token.secret),
        credential: GitHubCredential::Token(token.secret),
        source,
    })
}

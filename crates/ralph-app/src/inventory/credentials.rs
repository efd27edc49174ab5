//! The credentials of agents and of GitHub: whether each exists and how long it is valid, never its value.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::AppError;
use crate::planning::worker;
use crate::tokens::{
    AgentAuth, AgentName, FoundToken, ProbeError, TokenError, TokenSlot, TokenStorage, validate,
};

/// The state of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialState {
    /// It exists and has not expired. Only a test shows whether its provider accepts it.
    Found,
    Missing,
    Expired,
    /// The stored value or its store cannot be used.
    Unusable,
    /// The agent needs no credential.
    NotNeeded,
}

/// The credential that a run of an agent would use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CredentialEntry {
    /// The agent, or `github`.
    pub agent: String,
    pub state: CredentialState,
    /// How it is sent: `oauth`, `api-key` or `gateway`.
    pub mode: Option<String>,
    /// The store or the variable that contains it.
    pub store: Option<String>,
    /// The gateway that it is sent to.
    pub address: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    pub days_left: Option<i64>,
    /// Why it cannot be used.
    pub problem: Option<String>,
    pub fix: Option<String>,
}

/// The response of a provider to a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CredentialTest {
    pub credential: CredentialEntry,
    /// Whether the provider accepts it; null if the provider could not be asked.
    pub accepted: Option<bool>,
    /// Why it is not accepted, or why the provider could not be asked.
    pub problem: Option<String>,
}

impl CredentialEntry {
    fn new(agent: &str, state: CredentialState) -> Self {
        Self {
            agent: agent.to_owned(),
            state,
            mode: None,
            store: None,
            address: None,
            expires_at: None,
            days_left: None,
            problem: None,
            fix: None,
        }
    }

    /// Describes the credential of an agent that needs none.
    pub(super) fn not_needed(agent: &str) -> Self {
        Self::new(agent, CredentialState::NotNeeded)
    }

    /// Describes a credential without its value.
    pub(super) fn found(agent: &str, found: &FoundToken, now: Timestamp) -> Self {
        let token = &found.token;
        Self {
            mode: Some(found.mode.to_string()),
            store: Some(found.store.to_string()),
            address: token.base_url.as_ref().map(ToString::to_string),
            expires_at: token.expires,
            days_left: token.days_left(now),
            ..Self::new(agent, CredentialState::Found)
        }
    }

    /// Describes why there is no usable credential.
    pub(super) fn failed(agent: &str, error: TokenError) -> Self {
        let state = match &error {
            TokenError::Missing { .. } => CredentialState::Missing,
            TokenError::Expired { .. } => CredentialState::Expired,
            TokenError::Damaged { .. }
            | TokenError::Store { .. }
            | TokenError::NoKeyring { .. } => CredentialState::Unusable,
        };
        let expires_at = match &error {
            TokenError::Expired { expired, .. } => Some(*expired),
            TokenError::Missing { .. }
            | TokenError::Damaged { .. }
            | TokenError::Store { .. }
            | TokenError::NoKeyring { .. } => None,
        };
        let error = AppError::from(error);
        Self {
            expires_at,
            problem: Some(error.cause()),
            fix: Some(error.fix),
            ..Self::new(agent, state)
        }
    }
}

/// Lists the credentials of all known agents and of GitHub.
pub async fn list_credentials(app: &App) -> Result<Vec<CredentialEntry>, AppError> {
    let tokens = app.tokens_read_only()?;
    let mut entries = Vec::new();
    for agent in names(app)? {
        entries.push(match find(&agent, &tokens, app).await {
            Ok(found) => CredentialEntry::found(agent.as_str(), &found, tokens.now()),
            Err(error) => CredentialEntry::failed(agent.as_str(), error),
        });
    }
    Ok(entries)
}

/// Asks the provider of a credential whether it is valid.
pub async fn test_credential(agent: &str, app: &App) -> Result<CredentialTest, AppError> {
    let known = names(app)?;
    let Some(agent) = known.into_iter().find(|name| name.as_str() == agent) else {
        return Err(AppError::usage(
            format!("there is no agent `{agent}`"),
            "only agents and `github` have credentials",
            "list them with `ralph preflight`, or define the agent in your own agents.toml",
        ));
    };
    let tokens = app.tokens_read_only()?;
    let found = match find(&agent, &tokens, app).await {
        Ok(found) => found,
        Err(error) => {
            let credential = CredentialEntry::failed(agent.as_str(), error);
            return Ok(CredentialTest {
                problem: credential.problem.clone(),
                credential,
                accepted: Some(false),
            });
        }
    };
    let slot = TokenSlot {
        agent: found.agent.clone(),
        mode: found.mode,
    };
    let (accepted, problem) = match validate(&slot, &found.token).await {
        Ok(()) => (Some(true), None),
        Err(error @ ProbeError::Rejected { .. }) => (Some(false), Some(error.to_string())),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(CredentialTest {
        credential: CredentialEntry::found(agent.as_str(), &found, tokens.now()),
        accepted,
        problem,
    })
}

/// Returns the names of everything that can have a credential.
fn names(app: &App) -> Result<Vec<AgentName>, AppError> {
    let agents = app.agents()?;
    let others = agents.all().filter(|preset| !preset.credentials.is_empty());
    let others = others.map(|preset| preset.name.as_str());
    let mut names: Vec<AgentName> = Vec::new();
    for name in AgentAuth::KNOWN.into_iter().chain(others) {
        // Another program's configuration decides about the names of agents, which need not be valid here.
        let Ok(name) = AgentName::parse(name) else {
            continue;
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Finds a credential, and hides it in all output from now on.
async fn find(
    agent: &AgentName,
    tokens: &TokenStorage,
    app: &App,
) -> Result<FoundToken, TokenError> {
    let found = worker::find_token(agent, None, tokens, app).await?;
    app.add_secret("TOKEN", &found.token.secret);
    Ok(found)
}

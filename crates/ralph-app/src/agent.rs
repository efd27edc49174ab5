//! The coding agent of a run and its login.

use ralph_core::net::{Endpoint, ProviderTool};
use ralph_core::plan::AgentPlan;
use ralph_gate::{Route, RouteError};
use ralph_guest::available;
use ralph_providers::agent::{AgentCredential, CredentialKind, Preset};

use crate::error::AppError;
use crate::tokens::{
    AgentAuth, AgentName, AuthMode, BaseUrl, FoundToken, TokenError, TokenSlot, TokenStorage,
    store_command,
};

/// A coding agent that can be started.
pub struct AgentAccess {
    pub preset: Preset,
    /// The model to use; the agent chooses one if this is `None`.
    pub model: Option<String>,
    /// The login, if the agent needs one.
    pub login: Option<ProviderLogin>,
    /// The agent that replaces this one.
    pub fallback: Option<Box<AgentAccess>>,
}

/// The credential of an agent and the route to its provider.
pub struct ProviderLogin {
    pub credential: AgentCredential,
    /// How the gate sends the credential to the provider.
    pub route: Route,
    /// The address of the provider, if the user configured one. It is reachable even if it is
    /// private.
    pub custom_endpoint: Option<Endpoint>,
    /// The configured address as the user wrote it.
    custom_base_url: Option<BaseUrl>,
    /// How the provider receives the credential.
    pub mode: AuthMode,
    /// The command that stores a new credential.
    renew_command: String,
    /// The store or the variable that contains the credential.
    source: String,
}

/// Returns an error if no model is set for an agent that has no default model.
pub fn require_model(preset: &Preset, model: Option<&str>) -> Result<(), AppError> {
    let wants_one = preset.command.iter().any(|word| word.contains("{model}"));
    if !wants_one || model.is_some() {
        return Ok(());
    }
    Err(AppError::usage(
        format!("agent `{}` has no model", preset.name),
        "it does not choose one itself",
        "choose one with `--model`",
    ))
}

impl ProviderLogin {
    /// Returns whether both logins send the same credential to the same provider.
    pub fn is_same(&self, other: &Self) -> bool {
        let key = |login: &Self| {
            let route = login.route.name().to_owned();
            (route, login.mode, login.source.clone())
        };
        key(self) == key(other) && self.custom_endpoint == other.custom_endpoint
    }
}

impl AgentAccess {
    /// Returns the agent and its fallback.
    pub fn with_fallback(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.fallback.as_deref())
    }

    /// Returns the hosts that the agent and its fallback need.
    pub fn hosts(&self) -> Vec<String> {
        let hosts = self.with_fallback().flat_map(|access| &access.preset.hosts);
        let mut unique: Vec<String> = Vec::new();
        for host in hosts {
            if !unique.contains(host) {
                unique.push(host.clone());
            }
        }
        unique
    }

    /// Describes the destination of the credential if it is not the provider's default address.
    pub fn destination(&self) -> Option<String> {
        let login = self.login.as_ref()?;
        let (name, mode) = (&self.preset.name, login.mode);
        let address = login.custom_base_url.as_ref()?;
        Some(format!(
            "the credential of `{name}` ({mode}) goes to {address}"
        ))
    }

    /// Returns the plan's description of the agent.
    pub fn to_plan(
        &self,
        asked: Option<&String>,
        provider_tools: &[ProviderTool],
    ) -> Result<AgentPlan, AppError> {
        let definition = serde_json::to_value(&self.preset).map_err(|error| {
            AppError::usage(
                format!("cannot plan with the agent `{}`", self.preset.name),
                error.to_string(),
                "correct its entry in agents.toml",
            )
        })?;
        let fallback = self.fallback.as_deref().map(|fallback| {
            let plan = fallback.to_plan(fallback.model.as_ref(), provider_tools);
            plan.map(Box::new)
        });
        Ok(AgentPlan {
            fallback: fallback.transpose()?,
            definition: Some(definition),
            name: self.preset.name.clone(),
            model: asked.cloned(),
            auth: self.login.as_ref().map(|login| login.mode.to_string()),
            source: self.login.as_ref().map(|login| login.source.clone()),
            renew: self.login.as_ref().map(|login| login.renew_command.clone()),
            provider_tools: provider_tools.iter().copied().collect(),
        })
    }
}

/// A credential that an agent can use.
pub struct ChosenCredential {
    pub credential: AgentCredential,
    pub found: FoundToken,
}

/// Finds the best credential that the agent can use. Returns `None` if the agent needs none.
///
/// All stored credentials precede the environment: a stored one is the user's decision about the
/// destination of the code, a variable may be meant for another program. The agent's own precede
/// those of the agent that such credentials are usually for.
pub async fn find_credential(
    preset: &Preset,
    wanted: Option<AuthMode>,
    tokens: &TokenStorage,
) -> Result<Option<ChosenCredential>, TokenError> {
    let mut candidates: Vec<(&AgentCredential, TokenSlot)> = Vec::new();
    for credential in &preset.credentials {
        let modes = auth_modes(credential.kind).iter().copied();
        for mode in modes.filter(|mode| wanted.is_none_or(|wanted| wanted == *mode)) {
            let owners = credential_owners(&preset.name, credential.kind, mode);
            let slots = owners.into_iter().map(|agent| TokenSlot { agent, mode });
            candidates.extend(slots.map(|slot| (credential, slot)));
        }
    }
    candidates.sort_by_key(|(_, slot)| slot.agent.as_str() != preset.name);
    let slots: Vec<TokenSlot> = candidates.iter().map(|(_, slot)| slot.clone()).collect();
    let Some(first) = slots.first() else {
        return Ok(None);
    };
    let search = tokens.search_valid(&slots).await?;
    let Some(found) = search.found else {
        // An agent with several ways to log in accepts any of them.
        let is_only = preset.credentials.len() == 1 || wanted.is_some();
        return Err(TokenError::Missing {
            agent: first.agent.clone(),
            mode: is_only.then_some(first.mode),
            keyring_error: search.keyring_error,
        });
    };
    let is_found = |slot: &TokenSlot| slot.agent == found.agent && slot.mode == found.mode;
    let chosen = candidates.iter().find(|(_, slot)| is_found(slot));
    let credential = chosen.map(|(credential, _)| (*credential).clone());
    Ok(credential.map(|credential| ChosenCredential { credential, found }))
}

/// Returns the agents whose credentials of this kind the agent can use: itself, if it can have one,
/// and the agent that these credentials are usually for.
fn credential_owners(name: &str, kind: CredentialKind, mode: AuthMode) -> Vec<AgentName> {
    let usual = match kind {
        CredentialKind::AnthropicApiKey
        | CredentialKind::AnthropicOauth
        | CredentialKind::AnthropicGateway => "claude",
        CredentialKind::Openai => "codex",
    };
    let mut names: Vec<AgentName> = [name, usual]
        .into_iter()
        .filter_map(|name| available(AgentName::parse(name)))
        .filter(|name| AgentAuth::for_agent(name).modes.contains(&mode))
        .collect();
    names.dedup();
    names
}

/// Returns the ways in which a credential of this kind may be sent to its provider, the default
/// first.
pub fn auth_modes(kind: CredentialKind) -> &'static [AuthMode] {
    match kind {
        CredentialKind::AnthropicOauth => &[AuthMode::Oauth],
        CredentialKind::AnthropicApiKey => &[AuthMode::ApiKey],
        CredentialKind::AnthropicGateway => &[AuthMode::Gateway],
        CredentialKind::Openai => &[AuthMode::ApiKey, AuthMode::Gateway],
    }
}

/// Builds a login from a credential that was found.
pub fn login_from_credential(chosen: ChosenCredential) -> Result<ProviderLogin, AppError> {
    let ChosenCredential { credential, found } = chosen;
    let FoundToken {
        token,
        agent,
        mode,
        store,
    } = found;
    let address = token.base_url;
    let unusable = |error: RouteError| {
        AppError::runtime(
            "the credential cannot be used",
            error.to_string(),
            "store it again with `ralph store-token`",
        )
    };
    let route = match credential.kind {
        CredentialKind::AnthropicOauth => Route::anthropic_login(token.secret),
        CredentialKind::AnthropicApiKey => Route::anthropic_key(token.secret),
        CredentialKind::AnthropicGateway => {
            let address = address.as_ref().map(BaseUrl::as_str);
            Route::anthropic_compatible("anthropic", address.unwrap_or_default(), token.secret)
        }
        CredentialKind::Openai => Route::openai(token.secret),
    };
    let route = route.and_then(|route| match &address {
        Some(address) => route.with_base_url(address.as_str()),
        None => Ok(route),
    });
    let route = route.map_err(unusable)?;
    let custom_endpoint = address.as_ref().map(|_| route.endpoint().clone());
    Ok(ProviderLogin {
        credential,
        route,
        custom_endpoint,
        custom_base_url: address,
        mode,
        renew_command: store_command(&agent, Some(mode)),
        source: store.to_string(),
    })
}

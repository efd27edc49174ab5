//! Which agent does the work of a run, and what it logs in with.

use std::collections::BTreeSet;

use ralph_core::net::{Endpoint, ProviderTool};
use ralph_core::plan::{AgentPlan, EngineKind};
use ralph_core::task::Contract;
use ralph_gate::{Route, RouteError};
use ralph_providers::agent::{AgentCredential, CredentialKind, Preset};

use super::args::RunArgs;
use super::context::Context;
use super::error::CliError;
use crate::tokens::{
    AgentAuth, AgentName, AuthMode, BaseUrl, FoundToken, StoreSelection, TokenError, TokenStorage,
    store_command,
};

/// An agent that can be started.
pub(crate) struct AgentAccess {
    /// How.
    pub(crate) preset: Preset,
    /// The model that it is told to use.
    pub(crate) model: Option<String>,
    /// What it logs in with, if it has to.
    pub(crate) login: Option<ProviderLogin>,
}

/// What an agent logs in with.
pub(crate) struct ProviderLogin {
    /// What it is told.
    pub(crate) credential: AgentCredential,
    /// How the gate shows the credential to the provider.
    pub(crate) route: Route,
    /// The address of the provider, if a person named one: it is reached even if it is private.
    pub(crate) custom_endpoint: Option<Endpoint>,
    /// That address as a person wrote it.
    custom_base_url: Option<BaseUrl>,
    /// How the credential is shown to the provider.
    pub(super) mode: AuthMode,
    /// The command that stores another one.
    renew_command: String,
}

/// Returns who does the work: the flags win over the task.
pub(super) fn engine(args: &RunArgs, contract: Option<&Contract>) -> Result<EngineKind, CliError> {
    let chosen = args.engine.map(EngineKind::from);
    if chosen == Some(EngineKind::Actions) && args.agent.is_some() {
        return Err(CliError::usage(
            "`--agent` and `--engine actions` do not go together",
            "with the engine `actions` ralph asks a model itself",
            "leave one of them out",
        ));
    }
    let usual = if args.agent.is_some() {
        EngineKind::Agent
    } else {
        contract.map_or(EngineKind::Actions, |contract| contract.engine)
    };
    Ok(chosen.unwrap_or(usual))
}

/// Returns the agent of a new run, ready to be started.
pub(super) async fn agent_for_run(
    args: &RunArgs,
    contract: &Contract,
    context: &Context,
) -> Result<Option<AgentAccess>, CliError> {
    if engine(args, Some(contract))? == EngineKind::Actions {
        return Ok(None);
    }
    refuse_profile(args)?;
    let plan = AgentPlan {
        name: agent_name(args, Some(contract)).to_owned(),
        model: args.model.clone(),
        auth: None,
        renew: None,
        provider_tools: BTreeSet::new(),
    };
    access_for_plan(&plan, context).await.map(Some)
}

/// Returns the name of the agent that does the work, where one does.
pub(super) fn agent_name<'a>(args: &'a RunArgs, contract: Option<&'a Contract>) -> &'a str {
    let of_task = contract.and_then(|contract| contract.agent.as_deref());
    let named = args.agent.as_deref().or(of_task);
    named.unwrap_or(AgentName::DEFAULT)
}

/// Refuses a profile for an agent.
pub(super) fn refuse_profile(args: &RunArgs) -> Result<(), CliError> {
    if args.profile.is_none() {
        return Ok(());
    }
    Err(CliError::usage(
        "`--profile` does not go with an agent",
        "a profile says how ralph asks a model, and the agent asks its own",
        "name the model with `--model`, as the agent names it",
    ))
}

/// Returns the agent of a name.
pub(super) fn find_preset(name: &str, context: &Context) -> Result<Preset, CliError> {
    let agents = context.agents()?;
    let preset = agents.get(name).map_err(|error| {
        CliError::usage(
            error.to_string(),
            format!("there are `{}`", error.known.join("`, `")),
            UNKNOWN_AGENT_HINT,
        )
    })?;
    Ok(preset.clone())
}

/// What to do about an agent that there is not.
pub(super) const UNKNOWN_AGENT_HINT: &str =
    "name one of them, or describe it in your own agents.toml";

/// Refuses to start an agent without a model that cannot choose one.
pub(super) fn require_model(preset: &Preset, model: Option<&str>) -> Result<(), CliError> {
    let wants_one = preset.command.iter().any(|word| word.contains("{model}"));
    if !wants_one || model.is_some() {
        return Ok(());
    }
    Err(CliError::usage(
        format!("agent `{}` has no model", preset.name),
        "it cannot choose one by itself",
        "name one with `--model`",
    ))
}

/// Returns the agent of a plan, ready to be started with the same kind of credential.
pub(super) async fn access_for_plan(
    plan: &AgentPlan,
    context: &Context,
) -> Result<AgentAccess, CliError> {
    let preset = find_preset(&plan.name, context)?;
    require_model(&preset, plan.model.as_deref())?;
    let wanted = plan.auth.as_deref().and_then(parse_auth_mode);
    let found = find_credential(&preset, wanted, &context.tokens(StoreSelection::All)?).await?;
    let mut model = plan.model.clone();
    let login = match found {
        None => None,
        Some(chosen) => {
            let found = &chosen.found;
            context.add_secret(format!("{} credential", plan.name), &found.token.secret);
            if let (Some(prefix), Some(name)) = (&found.token.model_prefix, &model)
                && !name.starts_with(prefix.as_str())
            {
                model = Some(format!("{prefix}{name}"));
            }
            Some(login_from_credential(chosen)?)
        }
    };
    Ok(AgentAccess {
        preset,
        model,
        login,
    })
}

impl AgentAccess {
    /// Says where the credential goes, if that is not its provider's usual address.
    pub(super) fn destination(&self) -> Option<String> {
        let login = self.login.as_ref()?;
        let (name, mode) = (&self.preset.name, login.mode);
        let address = login.custom_base_url.as_ref()?;
        Some(format!(
            "the credential of `{name}` ({mode}) goes to {address}"
        ))
    }

    /// Returns what a plan says of it.
    pub(super) fn to_plan(
        &self,
        asked: Option<&String>,
        provider_tools: &[ProviderTool],
    ) -> AgentPlan {
        AgentPlan {
            name: self.preset.name.clone(),
            model: asked.cloned(),
            auth: self.login.as_ref().map(|login| login.mode.to_string()),
            renew: self.login.as_ref().map(|login| login.renew_command.clone()),
            provider_tools: provider_tools.iter().copied().collect(),
        }
    }
}

fn parse_auth_mode(name: &str) -> Option<AuthMode> {
    AuthMode::ALL.into_iter().find(|mode| mode.as_str() == name)
}

/// A credential that an agent can use, and whose it is.
pub(super) struct ChosenCredential {
    /// What the agent is told.
    pub(super) credential: AgentCredential,
    /// The credential.
    pub(super) found: FoundToken,
    /// The agent that it is stored for.
    pub(super) owner: AgentName,
}

/// Finds a credential that the agent can use, the best first; none if it needs none.
pub(super) async fn find_credential(
    preset: &Preset,
    wanted: Option<AuthMode>,
    tokens: &TokenStorage,
) -> Result<Option<ChosenCredential>, CliError> {
    let mut missing = None;
    for credential in &preset.credentials {
        let kind = credential.kind;
        let modes = auth_modes(kind).iter().copied();
        for mode in modes.filter(|mode| wanted.is_none_or(|wanted| wanted == *mode)) {
            for owner in credential_owners(&preset.name, kind, mode) {
                match tokens.find_valid(&owner, Some(mode)).await {
                    Ok(found) => {
                        return Ok(Some(ChosenCredential {
                            credential: credential.clone(),
                            found,
                            owner,
                        }));
                    }
                    Err(TokenError::Missing { unasked, .. }) => {
                        missing = missing.or(Some((owner, mode, unasked)));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    let Some((agent, mode, unasked)) = missing else {
        return Ok(None);
    };
    // Where it has several ways to log in, any would do.
    let mode = (preset.credentials.len() == 1 || wanted.is_some()).then_some(mode);
    let error = TokenError::Missing {
        agent,
        mode,
        unasked,
    };
    Err(error.into())
}

/// Returns the agents whose credentials of a kind it can use: its own, if it can have one, and those of the
/// agent that they are usually for.
fn credential_owners(name: &str, kind: CredentialKind, mode: AuthMode) -> Vec<AgentName> {
    let usual = match kind {
        CredentialKind::AnthropicApiKey
        | CredentialKind::AnthropicOauth
        | CredentialKind::AnthropicGateway => "claude",
        CredentialKind::Openai => "codex",
    };
    let mut names: Vec<AgentName> = [name, usual]
        .into_iter()
        .filter_map(|name| AgentName::parse(name).ok())
        .filter(|name| AgentAuth::for_agent(name).modes.contains(&mode))
        .collect();
    names.dedup();
    names
}

/// Returns how a credential of a kind may be shown to its provider, the usual way first.
pub(super) fn auth_modes(kind: CredentialKind) -> &'static [AuthMode] {
    match kind {
        CredentialKind::AnthropicOauth => &[AuthMode::Oauth],
        CredentialKind::AnthropicApiKey => &[AuthMode::ApiKey],
        CredentialKind::AnthropicGateway => &[AuthMode::Gateway],
        CredentialKind::Openai => &[AuthMode::ApiKey, AuthMode::Gateway],
    }
}

/// Returns what an agent logs in with, from a credential that was found.
pub(super) fn login_from_credential(chosen: ChosenCredential) -> Result<ProviderLogin, CliError> {
    let ChosenCredential {
        credential,
        found,
        owner,
    } = chosen;
    let FoundToken { token, mode, .. } = found;
    let address = token.base_url;
    let unusable = |error: RouteError| {
        CliError::runtime(
            "the credential cannot be used",
            error.to_string(),
            "store it again with `ralph store-token`",
        )
    };
    let made = match credential.kind {
        CredentialKind::AnthropicOauth => Route::anthropic_login(token.secret),
        CredentialKind::AnthropicApiKey => Route::anthropic_key(token.secret),
        CredentialKind::AnthropicGateway => {
            let address = address.as_ref().map(BaseUrl::as_str);
            Route::anthropic_compatible("anthropic", address.unwrap_or_default(), token.secret)
        }
        CredentialKind::Openai => Route::openai(token.secret),
    };
    let made = made.and_then(|route| match &address {
        Some(address) => route.with_base_url(address.as_str()),
        None => Ok(route),
    });
    let route = made.map_err(unusable)?;
    let named = address.as_ref().map(|_| route.endpoint().clone());
    Ok(ProviderLogin {
        credential,
        route,
        custom_endpoint: named,
        custom_base_url: address,
        mode,
        renew_command: store_command(&owner, Some(mode)),
    })
}

//! Who is tried out, and what it logs in with.

use ralph_core::secret::Secret;
use ralph_providers::agent::Preset;

use super::upstream::Upstream;
use crate::cli::agent::{self, Chosen, Login};
use crate::cli::care_args::SelftestArgs;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::preflight;
use crate::tokens::place::Place;
use crate::tokens::{AgentName, Among, BaseUrl, Found, Token};

/// A credential that nobody has.
const MADE_UP: &str = "sk-ant-selftest-made-up-0000000000000000";

/// An agent with what it logs in with.
pub(super) struct Account {
    /// The agent.
    pub(super) preset: Preset,
    /// What it logs in with, if it has to.
    pub(super) login: Option<Login>,
    /// What a gateway wants before the name of a model.
    pub(super) model_prefix: String,
    /// What there is to say about the credential.
    pub(super) told: String,
    /// Who answers instead of the provider; it ends with this.
    _upstream: Option<Upstream>,
}

impl Account {
    /// Finds the agent and its credential, or makes one up.
    pub(super) async fn find(args: &SelftestArgs, context: &Context) -> Result<Self, CliError> {
        let name = args.agent.as_deref().unwrap_or(AgentName::DEFAULT);
        let preset = agent::preset(name, context)?;
        if args.offline {
            return Self::made_up(preset).await;
        }
        let tokens = context.tokens(Among::All)?;
        let found = agent::find(&preset, None, &tokens).await;
        let found = found.map_err(|error| CliError {
            fix: format!(
                "{}, or try everything else with `ralph selftest --offline`",
                error.fix
            ),
            ..error
        })?;
        let Some(chosen) = found else {
            let told = format!("`{name}` needs none");
            return Ok(Self::without(preset, told));
        };
        let found = &chosen.found;
        context.learn(format!("{name} credential"), &found.token.secret);
        let model_prefix = found.token.model_prefix.clone().unwrap_or_default();
        let told = preflight::place_and_end(found, tokens.now());
        let login = Some(agent::login(chosen)?);
        Ok(Self {
            login,
            model_prefix,
            ..Self::without(preset, told)
        })
    }

    fn without(preset: Preset, told: String) -> Self {
        Self {
            preset,
            login: None,
            model_prefix: String::new(),
            told,
            _upstream: None,
        }
    }

    async fn made_up(preset: Preset) -> Result<Self, CliError> {
        let told = "made up: a stand-in for the provider takes it".to_owned();
        let usual = preset.credentials.first().cloned();
        let name = AgentName::parse(&preset.name).ok();
        let Some((credential, owner)) = usual.zip(name) else {
            let told = format!("`{}` needs none", preset.name);
            return Ok(Self::without(preset, told));
        };
        let secret = || Secret::new(MADE_UP.to_owned());
        let upstream = Upstream::start(secret()).await.map_err(|error| {
            CliError::runtime(
                "the stand-in for the provider cannot be started",
                error.to_string(),
                "look at the limits of this user (`ulimit -a`)",
            )
        })?;
        let address = format!("http://{}", upstream.address());
        let token = Token {
            secret: secret(),
            expires: None,
            base_url: BaseUrl::parse(&address).ok(),
            model_prefix: None,
        };
        let place = Place::Variable("nowhere");
        let mode = agent::modes(credential.kind)[0];
        let chosen = Chosen {
            credential,
            found: Found { token, mode, place },
            owner,
        };
        Ok(Self {
            login: Some(agent::login(chosen)?),
            _upstream: Some(upstream),
            ..Self::without(preset, told)
        })
    }
}

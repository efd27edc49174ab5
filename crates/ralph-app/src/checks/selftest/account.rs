//! The agent that the selftest uses, and its login.

use ralph_core::secret::Secret;
use ralph_guest::available;
use ralph_providers::agent::Preset;

use super::SelftestRequest;
use super::fake_provider::FakeModelProvider;
use crate::agent::{self, ChosenCredential, ProviderLogin};
use crate::app::App;
use crate::checks::preflight;
use crate::error::AppError;
use crate::planning::worker;
use crate::tokens::stores::TokenStoreKind;
use crate::tokens::{AgentName, AuthToken, BaseUrl, FoundToken, StoreSelection};

/// The credential of an offline selftest. No provider accepts it.
const FAKE_CREDENTIAL: &str = "sk-ant-selftest-made-up-0000000000000000";

/// An agent with its login.
pub(super) struct SelftestAccount {
    pub(super) preset: Preset,
    /// The login, if the agent needs one.
    pub(super) login: Option<ProviderLogin>,
    /// The prefix that a gateway expects before the name of a model.
    pub(super) model_prefix: String,
    /// A description of the credential.
    pub(super) description: String,
    /// The server that answers instead of the provider; dropping it stops it.
    _upstream: Option<FakeModelProvider>,
}

impl SelftestAccount {
    /// Finds the agent and its credential. An offline selftest uses a fake credential and starts the
    /// server that accepts it.
    pub(super) async fn find(request: &SelftestRequest, app: &App) -> Result<Self, AppError> {
        let name = request.agent.as_deref().unwrap_or(AgentName::DEFAULT);
        let preset = worker::find_preset(name, app)?;
        if request.offline {
            return Self::with_fake_credential(preset).await;
        }
        let tokens = app.tokens(StoreSelection::All)?;
        let found = agent::find_credential(&preset, None, &tokens).await;
        let found = found.map_err(AppError::from).map_err(|error| AppError {
            fix: format!(
                "{}, or test everything else with `ralph selftest --offline`",
                error.fix
            ),
            ..error
        })?;
        let Some(chosen) = found else {
            let description = format!("`{name}` needs none");
            return Ok(Self::without_login(preset, description));
        };
        let found = &chosen.found;
        app.add_secret(&format!("{name} credential"), &found.token.secret);
        let model_prefix = found.token.model_prefix.clone().unwrap_or_default();
        let description = preflight::describe_credential(found, tokens.now());
        let login = Some(agent::login_from_credential(chosen)?);
        Ok(Self {
            login,
            model_prefix,
            ..Self::without_login(preset, description)
        })
    }

    fn without_login(preset: Preset, description: String) -> Self {
        Self {
            preset,
            login: None,
            model_prefix: String::new(),
            description,
            _upstream: None,
        }
    }

    async fn with_fake_credential(preset: Preset) -> Result<Self, AppError> {
        let description = "a fake credential, which a local test server accepts".to_owned();
        let default = preset.credentials.first().cloned();
        // An agent of the user's own has no stored credentials.
        let name = available(AgentName::parse(&preset.name));
        let Some((credential, owner)) = default.zip(name) else {
            let description = format!("`{}` needs none", preset.name);
            return Ok(Self::without_login(preset, description));
        };
        let secret = || Secret::new(FAKE_CREDENTIAL.to_owned());
        let upstream = FakeModelProvider::start(secret()).await.map_err(|error| {
            AppError::runtime(
                "cannot start the test server",
                error.to_string(),
                "check the limits of this user (`ulimit -a`)",
            )
        })?;
        let address = format!("http://{}", upstream.address());
        let base_url = BaseUrl::parse(&address).map_err(|error| {
            AppError::runtime(
                "cannot use the address of the test server",
                error.to_string(),
                "report the problem",
            )
        })?;
        let token = AuthToken {
            secret: secret(),
            expires: None,
            base_url: Some(base_url),
            model_prefix: None,
        };
        let mode = agent::auth_modes(credential.kind)[0];
        let chosen = ChosenCredential {
            credential,
            found: FoundToken {
                agent: owner,
                token,
                mode,
                store: TokenStoreKind::Variable("nowhere"),
            },
        };
        Ok(Self {
            login: Some(agent::login_from_credential(chosen)?),
            _upstream: Some(upstream),
            ..Self::without_login(preset, description)
        })
    }
}

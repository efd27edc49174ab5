//! The keys of models: stored credentials of agents for the same API first, then environment
//! variables.

use std::sync::Arc;

use ralph_core::profile::ModelChoice;
use ralph_core::secret::Secret;
use ralph_guest::available;
use ralph_providers::model::http::{ApiCredential, CredentialScheme, ModelEndpoint};

use super::models::{ModelFactory, base_url};
use crate::config::{origin, user_sends_key};
use crate::error::AppError;
use crate::tokens::{AgentName, AuthMode, BaseUrl, FoundToken, TokenSlot, TokenStorage};

/// The providers of models, and the agent whose stored credentials are for the same API.
const OWNERS: [(&str, &str); 2] = [("anthropic", "claude"), ("openai", "codex")];

/// The credentials of agents in the token stores that models can use.
#[derive(Debug, Default)]
pub struct StoredModelKeys(Vec<(&'static str, Result<StoredModelKey, AppError>)>);

/// A stored key for a model, with its destination.
#[derive(Debug)]
pub struct StoredModelKey {
    pub secret: Secret,
    mode: AuthMode,
    base_url: Option<BaseUrl>,
    /// The prefix of model names at that address.
    pub(super) model_prefix: Option<String>,
    source: String,
}

impl StoredModelKeys {
    /// Loads the keys. An unusable one is reported when a model needs it.
    pub async fn load(tokens: &TokenStorage) -> Self {
        let mut keys = Vec::new();
        for (provider, agent) in OWNERS {
            let Ok(agent) = AgentName::parse(agent) else {
                continue;
            };
            // Providers accept a subscription's token only from the agent itself.
            let slots = [AuthMode::ApiKey, AuthMode::Gateway].map(|mode| TokenSlot {
                agent: agent.clone(),
                mode,
            });
            match tokens.search_valid_stored(&slots).await {
                Ok(search) => keys.extend(search.found.map(|found| (provider, Ok(found.into())))),
                Err(error) => keys.push((provider, Err(error.into()))),
            }
        }
        Self(keys)
    }

    /// Returns the usable keys.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let keys = self.0.iter();
        let keys = keys.filter_map(|(_, key)| available(key.as_ref()));
        keys.map(|key| &key.secret)
    }
}

impl From<FoundToken> for StoredModelKey {
    fn from(found: FoundToken) -> Self {
        Self {
            secret: found.token.secret,
            mode: found.mode,
            base_url: found.token.base_url,
            model_prefix: found.token.model_prefix,
            source: found.store.to_string(),
        }
    }
}

impl StoredModelKey {
    /// Returns the choice with the address of the key.
    pub(super) fn direct(&self, choice: &ModelChoice) -> ModelChoice {
        ModelChoice {
            api_base: self.base_url.as_ref().map(ToString::to_string),
            ..choice.clone()
        }
    }

    pub(super) fn credential(&self) -> Arc<ApiCredential> {
        Arc::new(ApiCredential {
            source: self.source.clone(),
            secret: Secret::new(self.secret.expose().to_owned()),
            scheme: match self.mode {
                AuthMode::Oauth | AuthMode::Gateway => CredentialScheme::Bearer,
                AuthMode::ApiKey => CredentialScheme::ApiKey,
            },
        })
    }
}

/// The source of a model's key, and whether the key exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStatus {
    /// The variables that may contain the key; the first one that is set applies.
    pub variables: Vec<String>,
    /// The store that contains the key, or the variable that is set.
    pub found_in: Option<String>,
    /// Whether the model requires a key.
    pub is_needed: bool,
}

impl ModelFactory {
    /// Returns the status of a model's key, or `None` for a model without network access or with an
    /// invalid name.
    pub fn key_status(&self, choice: &ModelChoice) -> Option<KeyStatus> {
        // Creating the model reports a name without an endpoint.
        let Ok(endpoint) = ModelEndpoint::for_choice(choice) else {
            return None;
        };
        if choice.is_local() {
            return None;
        }
        let found_in = match self.stored_key(choice) {
            Ok(Some(stored)) => Some(stored.source.clone()),
            // An unusable stored key is not replaced by a variable.
            Err(_) => None,
            Ok(None) => {
                let key = self
                    .base_url(&endpoint)
                    .map(|base| self.key(choice, &endpoint, &base));
                match key {
                    Some(Ok(Some((variable, _)))) => Some(variable),
                    Some(Ok(None) | Err(_)) | None => None,
                }
            }
        };
        Some(KeyStatus {
            found_in,
            variables: endpoint.key_variables,
            is_needed: endpoint.needs_key,
        })
    }

    /// Returns the stored key for a model. A profile with an address or a variable of its own does
    /// not use it, and a key without an address is sent only to the provider itself.
    pub(super) fn stored_key(
        &self,
        choice: &ModelChoice,
    ) -> Result<Option<&StoredModelKey>, AppError> {
        if choice.api_base.is_some() || choice.api_key_env.is_some() || choice.is_local() {
            return Ok(None);
        }
        let Ok(endpoint) = ModelEndpoint::for_choice(choice) else {
            return Ok(None);
        };
        let keys = self.stored.get().map_or(&[][..], |keys| keys.0.as_slice());
        let own = keys
            .iter()
            .find(|(provider, _)| *provider == endpoint.provider);
        let key = match own {
            None => return Ok(None),
            Some((_, Ok(key))) => key,
            Some((_, Err(error))) => return Err(error.clone()),
        };
        let is_redirected = base_url(&endpoint, &self.environment) != endpoint.default_base;
        Ok((key.base_url.is_some() || !is_redirected).then_some(key))
    }

    /// Returns the key of the environment for an address, with its variable. A key is sent only to the
    /// host of its provider, to one that the environment names, or to one that the user's
    /// `models.yaml` combines with exactly this variable.
    pub(super) fn key(
        &self,
        choice: &ModelChoice,
        endpoint: &ModelEndpoint,
        base: &str,
    ) -> Result<Option<(String, &str)>, AppError> {
        let mut withheld = None;
        for name in &endpoint.key_variables {
            let Some(value) = self.environment.credential(name) else {
                continue;
            };
            if self.is_provider_address(choice, endpoint, name, base)
                || user_sends_key(&self.layers(), name, base)?
            {
                return Ok(Some((name.clone(), value)));
            }
            withheld = withheld.or(Some(name));
        }
        match withheld {
            Some(name) if endpoint.needs_key => Err(self.key_withheld_error(choice, name, base)),
            Some(_) | None => Ok(None),
        }
    }

    /// Returns whether a variable belongs to the provider, and the address is the provider's
    /// default or the one that the environment sets for it.
    fn is_provider_address(
        &self,
        choice: &ModelChoice,
        endpoint: &ModelEndpoint,
        variable: &str,
        base: &str,
    ) -> bool {
        let default_choice = ModelChoice {
            api_base: None,
            api_key_env: None,
            ..choice.clone()
        };
        let Ok(default_endpoint) = ModelEndpoint::for_choice(&default_choice) else {
            return false;
        };
        let mut addresses = endpoint.base_variables.iter();
        let is_named = addresses.any(|name| {
            let address = self.environment.api_address(name);
            address.is_some_and(|address| origin(address) == origin(base))
        });
        let is_default = default_endpoint
            .default_base
            .is_some_and(|default| origin(&default) == origin(base));
        let mut variables = default_endpoint.key_variables.iter();
        variables.any(|own| own == variable) && (is_default || is_named)
    }

    fn key_withheld_error(&self, choice: &ModelChoice, variable: &str, base: &str) -> AppError {
        let file = self.layers().user_path("models.yaml");
        AppError::usage(
            format!("cannot use the model `{}`", choice.model),
            format!(
                "`{variable}` is not sent to {}: only your own configuration decides where credentials are sent",
                origin(base)
            ),
            format!("add a profile with this `api_base` and `api_key_env` to {file}"),
        )
    }
}

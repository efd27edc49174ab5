//! Creates models from model choices and the environment.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ralph_core::net;
use ralph_core::plan::{AgentPlan, PinnedSettings};
use ralph_core::ports::{Clock, Model};
use ralph_core::price::{self, Price, PriceBook};
use ralph_core::profile::ModelChoice;
use ralph_core::secret::Secret;
use ralph_engine::replies;
use ralph_engine::run::ChosenModel;
use ralph_engine::store::StateDir;
use ralph_providers::model::http::{
    ApiCredential, CredentialScheme, HttpModel, HttpModelSettings, HttpModelSettingsError,
    ModelEndpoint, ModelTimeouts, ProxySettings,
};
use ralph_providers::model::{AbsentModel, RecordedReply, ReplayModel, ScriptedModel};

use super::model_keys::StoredModelKeys;
use crate::config::{ConfigLayers, Environment, ModelProfiles, PriceSource, load_profiles, origin};
use crate::error::AppError;

/// The prefix in the names of models that only an agent asks.
const AGENT_MODEL_PREFIX: &str = "agent:";

/// The factory of models.
#[derive(Clone)]
pub struct ModelFactory {
    /// The environment with addresses, keys and proxies.
    pub environment: Environment,
    /// The state directory, for models that replay the responses of another run.
    pub state: StateDir,
    pub clock: Arc<dyn Clock>,
    /// The stored credentials, once they are loaded.
    pub stored: Arc<OnceLock<StoredModelKeys>>,
}

/// Returns the proxies of an environment.
pub fn proxy_settings(environment: &Environment) -> ProxySettings {
    let proxy = |scheme| environment.proxy(scheme).map(str::to_owned);
    ProxySettings {
        https_proxy: proxy("https"),
        http_proxy: proxy("http"),
        no_proxy: environment.no_proxy().map(str::to_owned),
    }
}

impl ModelFactory {
    /// Returns the model of a choice. `used` are the entries of a script or of a replayed run that the
    /// run has already used.
    pub fn create(
        &self,
        choice: &ModelChoice,
        used: &[String],
    ) -> Result<Arc<dyn Model>, AppError> {
        let name = &choice.model;
        if let Some(file) = name.strip_prefix("scripted:") {
            let scripted = ScriptedModel::load(Path::new(file), used).map_err(|error| {
                AppError::usage(
                    format!("cannot use the model `{name}`"),
                    error.to_string(),
                    "correct the script",
                )
            })?;
            return Ok(Arc::new(scripted));
        }
        if name.starts_with(AGENT_MODEL_PREFIX) {
            return Ok(Arc::new(AbsentModel::new(name)));
        }
        if let Some(run) = name.strip_prefix("replay:") {
            return self.replay_model(run, used.len());
        }
        Ok(Arc::new(self.http_model(choice)?))
    }

    pub(super) fn layers(&self) -> ConfigLayers {
        ConfigLayers::for_working_dir(&self.environment)
    }

    /// Returns the effective profiles of the working directory.
    fn profiles(&self) -> Result<ModelProfiles, AppError> {
        Ok(load_profiles(&self.layers())?.value)
    }

    /// Returns the model of a profile in the working directory.
    pub fn for_profile(&self, name: &str) -> Result<ChosenModel, AppError> {
        let profiles = self.profiles()?;
        let choice = profiles.resolve(name)?.to_model_choice(name);
        let sources = profiles.price_sources()?;
        self.chosen_model(self.complete_choice(choice, &sources))
    }

    /// Returns the model of a profile that a run was planned with. A profile that was added later is
    /// read from the configuration.
    pub fn for_pinned_profile(
        &self,
        name: &str,
        settings: &PinnedSettings,
    ) -> Result<ChosenModel, AppError> {
        match settings.profiles.get(name) {
            Some(choice) => self.chosen_model(choice.clone()),
            None => self.for_profile(name),
        }
    }

    /// Returns all profiles of the working directory as choices, and the name of the doctor's.
    pub fn pinned_profiles(
        &self,
    ) -> Result<(BTreeMap<String, ModelChoice>, Option<String>), AppError> {
        let profiles = self.profiles()?;
        let sources = profiles.price_sources()?;
        let choices = profiles.iter().map(|(name, profile)| {
            let choice = self.complete_choice(profile.to_model_choice(name), &sources);
            (name.to_owned(), choice)
        });
        Ok((choices.collect(), profiles.doctor_name().map(str::to_owned)))
    }

    /// Adds the directory of a script and the listed price to a choice.
    fn complete_choice(
        &self,
        mut choice: ModelChoice,
        sources: &[(PriceSource, PriceBook)],
    ) -> ModelChoice {
        choice.model = absolute_script(&choice.model, self.environment.working_dir());
        if choice.price.is_none() {
            let listed = sourced_price(sources, &choice, &self.environment);
            choice.price = listed.map(|(price, _)| price);
        }
        choice
    }

    fn chosen_model(&self, choice: ModelChoice) -> Result<ChosenModel, AppError> {
        Ok(ChosenModel {
            model: self.create(&choice, &[])?,
            price: price_or_highest(&choice),
            choice,
        })
    }

    /// Returns the prices of the working directory that precede the built-in ones.
    pub fn prices(&self) -> Result<PriceBook, AppError> {
        Ok(self.profiles()?.prices()?)
    }

    fn http_model(&self, choice: &ModelChoice) -> Result<HttpModel, AppError> {
        let name = &choice.model;
        let stored = self.stored_key(choice)?;
        let directed = stored.map(|key| key.direct(choice));
        let choice = directed.as_ref().unwrap_or(choice);
        let mut endpoint = ModelEndpoint::for_choice(choice).map_err(|error| {
            AppError::usage(
                format!("model `{name}` is not available"),
                error.to_string(),
                "name it like `zai/glm-4.7`, or give its profile an `api_base` in config/models.yaml",
            )
        })?;
        if let Some(prefix) = stored.and_then(|key| key.model_prefix.as_ref())
            && !endpoint.model.starts_with(prefix.as_str())
        {
            endpoint.model.insert_str(0, prefix);
        }
        let base = self.base_url(&endpoint).ok_or_else(|| {
            AppError::usage(
                format!("cannot use the model `{name}`"),
                format!(
                    "no address is configured for provider `{}`",
                    endpoint.provider
                ),
                format!(
                    "give its profile an `api_base`, or set `{}`",
                    endpoint.base_variables.join("` or `")
                ),
            )
        })?;
        let credential = match stored {
            Some(key) => Some(key.credential()),
            None => self.key(choice, &endpoint, &base)?.map(variable_key),
        };
        if credential.is_none() && endpoint.needs_key {
            return Err(AppError::usage(
                format!("cannot use the model `{name}`"),
                format!("`{}` is not set", endpoint.key_variables.join("` or `")),
                "set it in the environment or in `.env`, or choose another model with `--profile`",
            ));
        }
        let settings = HttpModelSettings {
            name: name.clone(),
            endpoint,
            base,
            credential,
            max_output_tokens: choice.max_output_tokens,
            temperature: choice.temperature,
            timeouts: choice
                .timeout_s
                .map_or_else(ModelTimeouts::default, |seconds| {
                    ModelTimeouts::for_total(Duration::from_secs(seconds.into()))
                }),
            network: self.network(),
            clock: self.clock.clone(),
        };
        HttpModel::new(settings).map_err(|error| unusable_model(name, &error))
    }

    pub(super) fn base_url(&self, endpoint: &ModelEndpoint) -> Option<String> {
        base_url(endpoint, &self.environment)
    }

    /// Returns the proxies of the environment.
    pub fn network(&self) -> ProxySettings {
        proxy_settings(&self.environment)
    }

    fn replay_model(&self, run: &str, used: usize) -> Result<Arc<dyn Model>, AppError> {
        let id = self.state.find(run)?;
        let recorded = replies::load(&self.state.run(&id))?;
        let recorded = recorded
            .into_iter()
            .map(|recorded| RecordedReply {
                iteration: recorded.iteration,
                attempt: recorded.attempt.attempt,
                text: recorded.is_original.then_some(recorded.attempt.reply),
                usage: recorded.attempt.usage,
            })
            .collect();
        Ok(Arc::new(ReplayModel::new(id.as_str(), recorded, used)))
    }
}

/// Returns the key of an environment variable.
fn variable_key((variable, value): (String, &str)) -> Arc<ApiCredential> {
    let scheme = if variable.ends_with("AUTH_TOKEN") {
        CredentialScheme::Bearer
    } else {
        CredentialScheme::ApiKey
    };
    Arc::new(ApiCredential {
        source: variable,
        secret: Secret::new(value.to_owned()),
        scheme,
    })
}

/// Returns the address of an endpoint: the profile's, the environment's or the provider's.
pub(super) fn base_url(endpoint: &ModelEndpoint, environment: &Environment) -> Option<String> {
    let set = || {
        let mut variables = endpoint.base_variables.iter();
        variables.find_map(|name| environment.api_address(name).map(str::to_owned))
    };
    let chosen = endpoint.chosen_base.clone();
    chosen
        .or_else(set)
        .or_else(|| endpoint.default_base.clone())
}

/// Returns the price of a model in the effective price maps, the built-in one last. A model that
/// the user's machine serves is free.
pub fn listed_price(
    profiles: &ModelProfiles,
    choice: &ModelChoice,
    environment: &Environment,
) -> Result<Option<Price>, AppError> {
    let sources = profiles.price_sources()?;
    let listed = sourced_price(&sources, choice, environment);
    Ok(listed.map(|(price, _)| price))
}

/// Returns the same price with its source.
pub fn sourced_price(
    sources: &[(PriceSource, PriceBook)],
    choice: &ModelChoice,
    environment: &Environment,
) -> Option<(Price, PriceSource)> {
    let model = choice.model.as_str();
    if choice.is_local() {
        return Some((price::embedded_price(model)?, PriceSource::Local));
    }
    let of_source = |(source, book): &(PriceSource, PriceBook)| {
        let price = book.price(model)?;
        Some((price, source.clone()))
    };
    let built_in = || {
        let litellm = PriceBook::EMBEDDED_VERSION;
        Some((
            price::embedded_price(model)?,
            PriceSource::BuiltIn { litellm },
        ))
    };
    let local = || {
        let is_free = is_served_locally(choice, environment);
        is_free.then_some((Price::FREE, PriceSource::Local))
    };
    let found = sources.iter().find_map(of_source);
    found.or_else(built_in).or_else(local)
}

/// Returns whether the user's machine serves a model of a local provider. A profile with a separate
/// key may name a gateway that bills, at any address.
fn is_served_locally(choice: &ModelChoice, environment: &Environment) -> bool {
    price::is_free_on_loopback(&choice.model)
        && choice.api_key_env.is_none()
        && ModelEndpoint::for_choice(choice).is_ok_and(|endpoint| {
            base_url(&endpoint, environment).is_some_and(|base| is_loopback(&base))
        })
}

/// Returns whether an address is a loopback address.
fn is_loopback(base: &str) -> bool {
    let origin = origin(base);
    let authority = origin.split_once("://").map_or("", |(_, rest)| rest);
    let Ok(endpoint) = net::Endpoint::parse(authority, 80) else {
        return false;
    };
    let address = endpoint.host.address();
    endpoint.host.name() == Some("localhost")
        || address.is_some_and(|address| address.is_loopback())
}

/// Returns the price of a model. An unknown model costs as much as the most expensive one.
pub fn price_or_highest(choice: &ModelChoice) -> Price {
    choice
        .price
        .or_else(|| price::embedded_price(&choice.model))
        .unwrap_or_else(price::highest_price)
}

/// Returns a model name with an absolute script path, which must name the same file when the run is
/// resumed from another directory.
pub fn absolute_script(model: &str, directory: &Path) -> String {
    match model.strip_prefix("scripted:") {
        Some(file) => {
            let path = directory.join(file);
            format!("scripted:{}", path.canonicalize().unwrap_or(path).display())
        }
        None => model.to_owned(),
    }
}

/// Returns the name of the model that an agent uses.
pub fn agent_model_name(plan: &AgentPlan) -> String {
    match &plan.model {
        Some(model) => format!("{AGENT_MODEL_PREFIX}{}:{model}", plan.name),
        None => format!("{AGENT_MODEL_PREFIX}{}", plan.name),
    }
}

fn unusable_model(name: &str, error: &HttpModelSettingsError) -> AppError {
    let fix = match error {
        HttpModelSettingsError::Base { .. } => {
            "correct `api_base` in config/models.yaml, or the variable with the address"
        }
        HttpModelSettingsError::Key { .. } => "set the variable to the key only",
        HttpModelSettingsError::Client(_) => {
            "check the proxy variables and the machine's certificates"
        }
    };
    AppError::usage(
        format!("cannot use the model `{name}`"),
        error.to_string(),
        fix,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_a_local_provider_are_free_only_on_this_machine() {
        let profiles = load_profiles(&ConfigLayers::for_directory(
            &Environment::for_test(&[]),
            Path::new("/nonexistent"),
        ));
        let profiles = profiles.unwrap().value;
        // Model, address, variable of the key, address in the environment.
        for (row, is_free) in [
            ("ollama/qwen3 - - -", true),
            ("ollama/qwen3 http://127.0.0.1:11434 - -", true),
            ("lm_studio/x http://[::1]:1234/v1 - -", true),
            ("lm_studio/x http://LOCALHOST:1234/v1 - -", true),
            ("lm_studio/x - - -", false),
            ("ollama/claude-opus-4-5 https://acme.example - -", false),
            ("ollama/x https://localhost@acme.example - -", false),
            ("ollama/x https://localhost.acme.example - -", false),
            ("ollama/x http://localhost:4000 ACME_KEY -", false),
            ("ollama/x - - https://acme.example", false),
            ("openai/unheard-of http://localhost:1 - -", false),
        ] {
            let words: Vec<&str> = row.split(' ').collect();
            let given = |index: usize| Some(words[index]).filter(|word| *word != "-");
            let choice = ModelChoice {
                api_base: given(1).map(str::to_owned),
                api_key_env: given(2).map(str::to_owned),
                ..ModelChoice::for_model(words[0])
            };
            let set: Vec<_> = given(3)
                .map(|base| ("OLLAMA_API_BASE", base))
                .into_iter()
                .collect();
            let environment = Environment::for_test(&set);
            let listed = listed_price(&profiles, &choice, &environment).unwrap();
            assert_eq!(listed, is_free.then_some(Price::FREE), "{row}");
            let charged = ModelChoice {
                price: listed,
                ..choice
            };
            assert_eq!(price_or_highest(&charged) == Price::FREE, is_free, "{row}");
            assert!(
                is_free || price_or_highest(&charged) == price::highest_price(),
                "{row}"
            );
        }
    }
}

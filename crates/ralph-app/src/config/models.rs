//! `config/models.yaml`: the models by the names that tasks use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ralph_core::money::Usd;
use ralph_core::price::Price;
use ralph_core::profile::{ModelChoice, ReplyFormat, WireApi};
use serde::{Deserialize, Serialize};

use super::Environment;
use super::error::ConfigFileError;
use super::prices::PriceFile;
use crate::error::AppError;

/// One model with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelProfile {
    /// The model in the form `provider/name`.
    pub litellm_model: String,
    pub max_output_tokens: u32,
    pub temperature: Option<f64>,
    /// The uses that the model is selected for, such as `default` or `doctor`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The address of the provider's API, if not the default.
    pub api_base: Option<String>,
    /// The environment variable with the credential, if not the default.
    pub api_key_env: Option<String>,
    /// The API that the provider speaks, if not the default.
    pub wire: Option<WireApi>,
    /// How the response format is requested, if not the default.
    pub response_format: Option<ReplyFormat>,
    /// The timeout of one call, in seconds.
    pub timeout_s: Option<u32>,
    /// In dollars.
    pub input_cost_per_token: Option<f64>,
    /// In dollars.
    pub output_cost_per_token: Option<f64>,
    /// The price of an input token that is read from a cache, in dollars.
    pub cache_read_input_token_cost: Option<f64>,
    /// The price of an input token that is written to a cache, in dollars.
    pub cache_creation_input_token_cost: Option<f64>,
    /// The price of an input token that is written to a cache for an hour, in dollars.
    pub cache_creation_input_token_cost_above_1hr: Option<f64>,
    /// The price of a reasoning token, in dollars.
    pub output_cost_per_reasoning_token: Option<f64>,
}

impl ModelProfile {
    /// Converts the profile to a model choice.
    pub fn to_model_choice(&self, name: &str) -> ModelChoice {
        ModelChoice {
            profile: Some(name.to_owned()),
            model: self.litellm_model.clone(),
            max_output_tokens: Some(self.max_output_tokens),
            temperature: self.temperature,
            api_base: self.api_base.clone(),
            api_key_env: self.api_key_env.clone(),
            wire: self.wire,
            reply_format: self.response_format,
            timeout_s: self.timeout_s,
            price: self.price(),
        }
    }

    /// Returns the price of the profile, or `None` without both an input and an output price.
    fn price(&self) -> Option<Price> {
        let million = |per_token: Option<f64>| Usd::from_dollars(per_token? * 1e6);
        Some(Price {
            input: million(self.input_cost_per_token)?,
            output: million(self.output_cost_per_token)?,
            cache_read: million(self.cache_read_input_token_cost),
            cache_write: million(self.cache_creation_input_token_cost),
            cache_write_1h: million(self.cache_creation_input_token_cost_above_1hr),
            reasoning: million(self.output_cost_per_reasoning_token),
            ..Price::FREE
        })
    }

    /// Returns the problem of an invalid profile.
    fn validation_error(&self) -> Option<String> {
        let costs = [
            self.input_cost_per_token,
            self.output_cost_per_token,
            self.cache_read_input_token_cost,
            self.cache_creation_input_token_cost,
            self.cache_creation_input_token_cost_above_1hr,
            self.output_cost_per_reasoning_token,
        ];
        let is_price = |cost: &f64| Usd::from_dollars(cost * 1e6).is_some();
        let has_one = self.input_cost_per_token.is_some() != self.output_cost_per_token.is_some();
        if self.litellm_model.trim().is_empty() {
            Some("`litellm_model` is empty".into())
        } else if self.max_output_tokens == 0 {
            Some("`max_output_tokens` is 0; it must be at least 1".into())
        } else if self.timeout_s == Some(0) {
            Some("`timeout_s` is 0; it must be at least 1".into())
        } else if !self
            .temperature
            .is_none_or(|heat| (0.0..=2.0).contains(&heat))
        {
            Some("`temperature` is not between 0 and 2".into())
        } else if !costs.iter().flatten().all(is_price) {
            Some("a token price is below 0 or above 1000 dollars".into())
        } else if has_one {
            Some("only one of `input_cost_per_token` and `output_cost_per_token` is given".into())
        } else {
            let variable = self.api_key_env.as_ref()?;
            (!Environment::is_credential_name(variable)).then(|| {
                format!(
                    "`api_key_env` names `{variable}`, which does not look like the name of a key; use a name like `MY_API_KEY`"
                )
            })
        }
    }
}

/// All profiles of a project.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelProfiles {
    pub(super) by_name: BTreeMap<String, ModelProfile>,
    pub(super) price_file: Option<PriceFile>,
    /// The path of the user's stored prices, whether or not it exists.
    pub(super) stored_prices: Option<PathBuf>,
    pub(super) source: Option<PathBuf>,
    /// Profiles of the repository that are not in effect, with the reasons.
    pub(super) withheld: BTreeMap<String, String>,
    /// The addresses in the user's configuration, and the keys that are sent to them.
    pub(super) user_keys: KeyDestinations,
}

/// The requested profile does not exist, or lacks an approval.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no model profile `{name}`")]
pub struct ProfileError {
    pub name: String,
    pub known: Vec<String>,
    /// The file of the profiles, or `None` for the built-in ones.
    pub source_file: Option<PathBuf>,
    /// The reason why the repository's profile of that name is not in effect.
    pub withheld: Option<String>,
}

/// The content of a `models.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelsFile {
    pub(super) profiles: BTreeMap<String, ModelProfile>,
    pub(super) price_file: Option<PathBuf>,
}

impl ModelProfiles {
    /// The path of the file in the project's directory.
    pub const FILE: &'static str = "config/models.yaml";

    /// Returns the variables with keys that the profiles name.
    pub(crate) fn key_variables(&self) -> Vec<String> {
        let profiles = self.by_name.values();
        profiles
            .filter_map(|profile| profile.api_key_env.clone())
            .collect()
    }

    /// Returns the profiles that ship with ralph.
    pub(super) fn built_in() -> Result<ModelsFile, ConfigFileError> {
        let path = Path::new("built-in models.yaml");
        Self::parse(path, ralph_core::templates::MODELS)
    }

    /// Parses the text of a `models.yaml`.
    pub(super) fn parse(path: &Path, text: &str) -> Result<ModelsFile, ConfigFileError> {
        let file: Result<ModelsFile, _> = serde_saphyr::from_str(text);
        let file = file.map_err(|error| {
            let location = error.location();
            let number = |number: Option<u64>| {
                number.map_or(1, |number| usize::try_from(number).unwrap_or(usize::MAX))
            };
            ConfigFileError::Invalid {
                path: path.to_owned(),
                line: number(location.map(|location| location.line())),
                column: number(location.map(|location| location.column())),
                why: error_summary(&error),
            }
        })?;
        for (name, profile) in &file.profiles {
            if let Some(why) = profile.validation_error() {
                return Err(ConfigFileError::Invalid {
                    path: path.to_owned(),
                    line: profile_line(text, name),
                    column: 1,
                    why: format!("profile `{name}`: {why}"),
                });
            }
        }
        Ok(file)
    }

    /// Returns the profiles with their names, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ModelProfile)> {
        self.by_name
            .iter()
            .map(|(name, profile)| (name.as_str(), profile))
    }

    /// Returns whether the user's configuration sends the key in a variable to an address.
    pub fn sends_key(&self, variable: &str, base: &str) -> bool {
        self.user_keys.includes(variable, base)
    }

    /// Returns a profile by its name.
    pub fn resolve(&self, name: &str) -> Result<&ModelProfile, ProfileError> {
        self.by_name.get(name).ok_or_else(|| ProfileError {
            name: name.to_owned(),
            known: self.by_name.keys().cloned().collect(),
            source_file: self.source.clone(),
            withheld: self.withheld.get(name).cloned(),
        })
    }

    /// Returns the name of the default profile: the first with the tag `default`, or else the first
    /// of all.
    pub fn default_name(&self) -> Option<&str> {
        self.first_tagged("default")
            .or_else(|| self.by_name.keys().next().map(String::as_str))
    }

    /// Returns the name of the doctor's profile: the first with the tag `doctor`.
    pub fn doctor_name(&self) -> Option<&str> {
        self.first_tagged("doctor")
    }

    fn first_tagged(&self, wanted: &str) -> Option<&str> {
        let mut profiles = self.iter();
        let tagged = profiles.find(|(_, profile)| profile.tags.iter().any(|tag| tag == wanted));
        tagged.map(|(name, _)| name)
    }
}

/// Addresses and the variables whose keys are sent to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyDestinations {
    pairs: Vec<(String, String)>,
}

impl KeyDestinations {
    /// Adds the address of a profile and the variables that may contain its key.
    pub(super) fn add(&mut self, base: &str, variables: &[String]) {
        let of_base = |variable: &String| (origin(base), variable.clone());
        self.pairs.extend(variables.iter().map(of_base));
    }

    /// Returns whether any variable's key is sent to the address.
    pub(super) fn has_address(&self, base: &str) -> bool {
        let wanted = origin(base);
        self.pairs.iter().any(|(origin, _)| *origin == wanted)
    }

    fn includes(&self, variable: &str, base: &str) -> bool {
        let wanted = origin(base);
        let mut pairs = self.pairs.iter();
        pairs.any(|(origin, known)| *origin == wanted && known == variable)
    }
}

/// Returns scheme, host and port of an address, which determine the receiver of a key. They are
/// parsed like in the client that sends the key. An invalid address is equal only to itself.
pub fn origin(base: &str) -> String {
    ralph_providers::model::http::origin(base).unwrap_or_else(|| format!("unusable: {base}"))
}

/// Returns the line number of a profile.
fn profile_line(text: &str, name: &str) -> usize {
    let begins = |line: &str| {
        let line = line.trim_start().trim_start_matches(['"', '\'']);
        line.strip_prefix(name)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).starts_with(':'))
    };
    text.lines().position(begins).map_or(1, |index| index + 1)
}

/// Returns the message without the position and the excerpt, which are shown separately.
fn error_summary(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or_default();
    // The rest repeats the position or addresses programmers.
    let end = [" at line ", ", set DuplicateKeyPolicy"]
        .iter()
        .filter_map(|rest| first.find(rest))
        .min();
    first[..end.unwrap_or(first.len())].to_owned()
}

impl From<ProfileError> for AppError {
    fn from(error: ProfileError) -> Self {
        if let Some(why) = error.withheld {
            return Self::usage(
                format!("the model profile `{}` is not allowed", error.name),
                why,
                "see it with `ralph trust`, or choose another profile with `--profile`",
            );
        }
        if error.known.is_empty() {
            return Self::usage(
                error.to_string(),
                "no profiles are configured",
                "add it to `config/models.yaml`",
            );
        }
        let source = error.source_file.as_ref().map_or_else(
            || "the built-in profiles are".to_owned(),
            |path| format!("`{}` has", path.display()),
        );
        Self::usage(
            error.to_string(),
            format!("{source} {}", error.known.join(", ")),
            "use one of these, or add it to `config/models.yaml`",
        )
    }
}

#[cfg(test)]
mod tests {
    use ralph_core::price::PriceBook;

    use super::*;

    use crate::config::{ConfigLayers, load_profiles};

    fn load(directory: &Path, variables: &[(&str, &str)]) -> ModelProfiles {
        let environment = Environment::for_test(variables);
        let layers = ConfigLayers::for_directory(&environment, directory);
        load_profiles(&layers).unwrap().value
    }

    #[test]
    fn an_address_is_compared_by_scheme_host_and_port() {
        for (base, expected) in [
            ("https://api.z.ai/api/paas/v4", "https://api.z.ai"),
            ("HTTPS://API.Z.AI:443", "https://api.z.ai"),
            ("https://api.z.ai@evil.example/v4", "https://evil.example"),
            (
                "https://api.z.ai.evil.example",
                "https://api.z.ai.evil.example",
            ),
            ("http://api.z.ai", "http://api.z.ai"),
            ("https://api.z.ai:8443/", "https://api.z.ai:8443"),
            (
                "https://evil.example?https://api.z.ai/",
                "https://evil.example",
            ),
            // The client ends the host at a backslash.
            (r"https://evil.example\@api.z.ai/v4", "https://evil.example"),
            ("https://api.z\n.ai/v4", "https://api.z.ai"),
            ("api.z.ai", "unusable: api.z.ai"),
        ] {
            assert_eq!(origin(base), expected, "{base}");
        }
    }

    #[test]
    fn the_built_in_profiles_can_be_resolved() {
        let profiles = load(Path::new("/nonexistent"), &[]);
        assert_eq!(profiles.default_name(), Some("default-cheap"));
        assert_eq!(profiles.doctor_name(), Some("strong-doctor"));
        assert_eq!(
            profiles.resolve("default-cheap"),
            Ok(&ModelProfile {
                litellm_model: "zai/glm-4.7".into(),
                max_output_tokens: 16384,
                temperature: Some(0.2),
                tags: vec!["default".into(), "cheap".into()],
                api_base: None,
                api_key_env: None,
                wire: None,
                response_format: None,
                timeout_s: None,
                input_cost_per_token: None,
                output_cost_per_token: None,
                cache_read_input_token_cost: None,
                cache_creation_input_token_cost: None,
                cache_creation_input_token_cost_above_1hr: None,
                output_cost_per_reasoning_token: None,
            })
        );
        assert_eq!(
            profiles.resolve("cheap"),
            Err(ProfileError {
                name: "cheap".into(),
                known: ["codex-like", "default-cheap", "strong-doctor"]
                    .map(String::from)
                    .into(),
                source_file: None,
                withheld: None,
            })
        );
    }

    #[test]
    fn the_users_file_replaces_the_built_in_profiles() {
        let project = tempfile::tempdir().unwrap();
        let file = project.path().join("models.yaml");
        std::fs::write(
            &file,
            "profiles:\n  mine:\n    litellm_model: openai/x\n    max_output_tokens: 10\n    \
             api_key_env: MY_KEY\n    input_cost_per_token: 0.0000006\n    \
             output_cost_per_token: 0.0000022\n    \
             cache_creation_input_token_cost_above_1hr: 0.0000012\n    \
             output_cost_per_reasoning_token: 0.000004\n",
        )
        .unwrap();
        let user = project.path().display().to_string();
        let profiles = load(Path::new("/nonexistent"), &[("RALPH_CONFIG_DIR", &user)]);
        assert_eq!(profiles.default_name(), Some("mine"));
        assert_eq!(profiles.doctor_name(), None);
        let mine = profiles.resolve("mine").unwrap();
        assert_eq!(mine.api_key_env.as_deref(), Some("MY_KEY"));
        let choice = mine.to_model_choice("mine");
        assert_eq!(choice.model, "openai/x");
        let price = choice.price.unwrap();
        assert_eq!((price.input.dollars(), price.output.dollars()), (0.6, 2.2));
        assert_eq!(price.cache_write_1h.map(Usd::dollars), Some(1.2));
        assert_eq!(price.reasoning.map(Usd::dollars), Some(4.0));
        assert_eq!(profiles.prices().unwrap(), PriceBook::default());
        let missing = profiles.resolve("default-cheap").unwrap_err();
        assert_eq!(missing.source_file, Some(file));
    }

    #[test]
    fn what_has_no_meaning_is_an_error_with_its_place() {
        let profile = "profiles:\n  a:\n    litellm_model: x\n    max_output_tokens: 10\n";
        let errors: Vec<String> = [
            format!("{profile}    tempreature: 1\n"),
            format!("{profile}    temperature: hot\n"),
            format!("{profile}{profile}"),
            format!("{profile}    api_key_env: HOME\n"),
            format!("{profile}    temperature: 7\n"),
            format!("{profile}    input_cost_per_token: 1e-6\n"),
            format!("{profile}    input_cost_per_token: -1\n    output_cost_per_token: 1\n"),
            format!("{profile}    wire: telegraph\n"),
            "profiles:\n  a: {}\n".to_owned(),
            "profiles: [\n".to_owned(),
            "x: 1\n".to_owned(),
            String::new(),
        ]
        .iter()
        .map(|text| {
            let error = ModelProfiles::parse(Path::new("m.yaml"), text).unwrap_err();
            error.to_string()
        })
        .collect();
        snapbox::assert_data_eq!(
            errors.join("\n"),
            snapbox::str![[r"
`m.yaml` line 5, column 5: unknown field `tempreature`, expected one of litellm_model, max_output_tokens, temperature, tags, api_base, api_key_env, wire, response_format, timeout_s, input_cost_per_token, output_cost_per_token, cache_read_input_token_cost, cache_creation_input_token_cost, cache_creation_input_token_cost_above_1hr, output_cost_per_reasoning_token
`m.yaml` line 5, column 18: invalid floating point
`m.yaml` line 5, column 1: duplicate mapping key: profiles
`m.yaml` line 2, column 1: profile `a`: `api_key_env` names `HOME`, which does not look like the name of a key; use a name like `MY_API_KEY`
`m.yaml` line 2, column 1: profile `a`: `temperature` is not between 0 and 2
`m.yaml` line 2, column 1: profile `a`: only one of `input_cost_per_token` and `output_cost_per_token` is given
`m.yaml` line 2, column 1: profile `a`: a token price is below 0 or above 1000 dollars
`m.yaml` line 5, column 11: unknown variant `telegraph`, expected one of chat, responses, messages, gemini
`m.yaml` line 2, column 6: missing field `litellm_model`
`m.yaml` line 1, column 11: expected mapping start
`m.yaml` line 1, column 1: unknown field `x`, expected one of profiles, price_file
`m.yaml` line 1, column 1: unexpected end of input
"]]
        );
    }
}

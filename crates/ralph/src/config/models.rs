//! `config/models.yaml`: which models there are, by the names that tasks use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::problem::{self, ConfigError};

/// One model with its settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The model, as `provider/name`.
    pub litellm_model: String,
    /// How long an answer may be.
    pub max_output_tokens: u32,
    /// How much chance is in the answer.
    pub temperature: Option<f64>,
    /// What it is good for.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Where the provider's API is, if not at its usual address.
    pub api_base: Option<String>,
    /// The environment variable with the credential, if not the provider's usual one.
    pub api_key_env: Option<String>,
    /// The price of one input token in dollars.
    pub input_cost_per_token: Option<f64>,
    /// The price of one output token in dollars.
    pub output_cost_per_token: Option<f64>,
    /// The price of one input token that is read from a cache.
    pub cache_read_input_token_cost: Option<f64>,
    /// The price of one input token that is written to a cache.
    pub cache_creation_input_token_cost: Option<f64>,
}

/// All profiles of a project.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiles {
    by_name: BTreeMap<String, Profile>,
    source: Option<PathBuf>,
}

/// Why there is no such profile.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no model profile `{name}`")]
pub struct ProfileError {
    /// What was asked for.
    pub name: String,
    /// What there is.
    pub known: Vec<String>,
    /// The file they are in; none for the built-in ones.
    pub source_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    profiles: BTreeMap<String, Profile>,
}

impl Profiles {
    /// The name of the file, in the project's directory.
    pub const FILE: &'static str = "config/models.yaml";

    /// Returns the profiles that hold in a directory: those of the nearest file, or the built-in ones.
    pub fn load(directory: &Path) -> Result<Self, ConfigError> {
        let source = super::find(directory, Self::FILE);
        let by_name = if let Some(path) = &source {
            Self::parse(path, &problem::read(path)?)?
        } else {
            let path = Path::new("built-in models.yaml");
            Self::parse(path, ralph_core::templates::MODELS)?
        };
        Ok(Self { by_name, source })
    }

    /// Parses the text of a `models.yaml`.
    fn parse(path: &Path, text: &str) -> Result<BTreeMap<String, Profile>, ConfigError> {
        let file: Result<File, _> = serde_saphyr::from_str(text);
        file.map(|file| file.profiles).map_err(|error| {
            let location = error.location();
            let number = |number: Option<u64>| {
                number.map_or(1, |number| usize::try_from(number).unwrap_or(usize::MAX))
            };
            ConfigError::Wrong {
                path: path.to_owned(),
                line: number(location.map(|location| location.line())),
                column: number(location.map(|location| location.column())),
                why: one_line(&error),
            }
        })
    }

    /// Returns a profile by its name.
    pub fn resolve(&self, name: &str) -> Result<&Profile, ProfileError> {
        self.by_name.get(name).ok_or_else(|| ProfileError {
            name: name.to_owned(),
            known: self.by_name.keys().cloned().collect(),
            source_file: self.source.clone(),
        })
    }

    /// Returns the name of the profile that is meant when nobody names one: the first with the tag
    /// `default`, else the first of all.
    pub fn default_name(&self) -> Option<&str> {
        let tagged = self
            .by_name
            .iter()
            .find(|(_, profile)| profile.tags.iter().any(|tag| tag == "default"));
        tagged
            .map(|(name, _)| name.as_str())
            .or_else(|| self.by_name.keys().next().map(String::as_str))
    }
}

/// Returns the message without the place and the excerpt, which are shown apart.
fn one_line(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or_default();
    // What follows is the place once more, or speaks to programmers.
    let end = [" at line ", ", set DuplicateKeyPolicy"]
        .iter()
        .filter_map(|rest| first.find(rest))
        .min();
    first[..end.unwrap_or(first.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profiles_can_be_resolved() {
        let profiles = Profiles::load(Path::new("/nonexistent")).unwrap();
        assert_eq!(profiles.default_name(), Some("default-cheap"));
        assert_eq!(
            profiles.resolve("default-cheap"),
            Ok(&Profile {
                litellm_model: "zai/glm-4.7".into(),
                max_output_tokens: 2048,
                temperature: Some(0.2),
                tags: vec!["default".into(), "cheap".into()],
                api_base: None,
                api_key_env: None,
                input_cost_per_token: None,
                output_cost_per_token: None,
                cache_read_input_token_cost: None,
                cache_creation_input_token_cost: None,
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
            })
        );
    }

    #[test]
    fn a_projects_file_replaces_the_built_in_profiles() {
        let project = tempfile::tempdir().unwrap();
        let file = project.path().join(Profiles::FILE);
        std::fs::create_dir(project.path().join("config")).unwrap();
        std::fs::write(
            &file,
            "profiles:\n  mine:\n    litellm_model: openai/x\n    max_output_tokens: 10\n    \
             api_key_env: MY_KEY\n    input_cost_per_token: 0.0000006\n",
        )
        .unwrap();
        let profiles = Profiles::load(project.path()).unwrap();
        assert_eq!(profiles.default_name(), Some("mine"));
        let mine = profiles.resolve("mine").unwrap();
        assert_eq!(mine.api_key_env.as_deref(), Some("MY_KEY"));
        assert_eq!(mine.input_cost_per_token, Some(0.000_000_6));
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
            "profiles:\n  a: {}\n".to_owned(),
            "profiles: [\n".to_owned(),
            "x: 1\n".to_owned(),
            String::new(),
        ]
        .iter()
        .map(|text| {
            let error = Profiles::parse(Path::new("m.yaml"), text).unwrap_err();
            error.to_string()
        })
        .collect();
        snapbox::assert_data_eq!(
            errors.join("\n"),
            snapbox::str![[r"
`m.yaml` line 5, column 5: unknown field `tempreature`, expected one of litellm_model, max_output_tokens, temperature, tags, api_base, api_key_env, input_cost_per_token, output_cost_per_token, cache_read_input_token_cost, cache_creation_input_token_cost
`m.yaml` line 5, column 18: invalid floating point
`m.yaml` line 5, column 1: duplicate mapping key: profiles
`m.yaml` line 2, column 6: missing field `litellm_model`
`m.yaml` line 1, column 11: expected mapping start
`m.yaml` line 1, column 1: unknown field `x`, expected one of profiles
`m.yaml` line 1, column 1: unexpected end of input
"]]
        );
    }
}

//! The effective settings of a working directory, each with the layer that it comes from.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::request::{RunRequest, TASK_FILE};
use super::sandbox_choice;
use crate::app::App;
use crate::config::{GITHUB_API_VARIABLE, Memory, ValueOrigin, merge_settings};
use crate::error::AppError;

/// The keys whose values are amounts of memory.
const MEMORY_KEYS: [&str; 2] = ["sandbox.resources.memory", "sandbox.resources.disk"];

/// The key whose value may contain a token.
const WEBHOOK_KEY: &str = "notify.webhook";

const DEFAULT_PROFILE: &str = "RALPH_DEFAULT_MODEL_PROFILE";
const FALLBACK_PROFILE: &str = "RALPH_FALLBACK_MODEL_PROFILE";

/// A setting with its effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveSetting {
    /// The dotted key of `ralph.toml`, or the name of a variable without such a key.
    pub key: String,
    /// The value, as `ralph.toml` has it.
    pub value: Value,
    pub origin: ValueOrigin,
    /// The values of the repository that wait for the user's approval.
    pub pending: Vec<String>,
    /// The value of the repository that only the user's own file may set.
    pub refused: Option<String>,
}

/// A setting as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SettingEntry {
    /// The dotted key of `ralph.toml`, or the name of a variable without such a key.
    pub key: String,
    pub value: Value,
    pub source: SettingSource,
    pub file: Option<String>,
    pub variable: Option<String>,
    /// The values of the repository that wait for the user's approval.
    pub pending: Vec<String>,
    /// The value of the repository that only the user's own file may set.
    pub refused: Option<String>,
}

/// The layer that a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    Default,
    User,
    Project,
    Environment,
    Dotenv,
}

impl EffectiveSetting {
    /// Returns the setting as JSON, with a value of [`Self::listed_value`] or in full.
    pub fn entry(&self, value: Value) -> SettingEntry {
        let path = |path: &Path| Some(path.display().to_string());
        let (source, file, variable) = match &self.origin {
            ValueOrigin::Default => (SettingSource::Default, None, None),
            ValueOrigin::UserFile(file) => (SettingSource::User, path(file), None),
            ValueOrigin::ProjectFile(file) => (SettingSource::Project, path(file), None),
            ValueOrigin::Environment(name) => (SettingSource::Environment, None, Some(name)),
            ValueOrigin::Dotenv(name) => (SettingSource::Dotenv, None, Some(name)),
        };
        SettingEntry {
            key: self.key.clone(),
            value,
            source,
            file,
            variable: variable.map(|name| (*name).to_owned()),
            pending: self.pending.clone(),
            refused: self.refused.clone(),
        }
    }

    /// Returns the value for a list of all settings: of a webhook only the server, because the rest
    /// of its address may be a credential.
    pub fn listed_value(&self) -> Value {
        let address = self.value.as_str().filter(|_| self.key == WEBHOOK_KEY);
        let Some((scheme, rest)) = address.and_then(|address| address.split_once("://")) else {
            return self.value.clone();
        };
        match rest.split_once(['/', '?']) {
            Some((host, path)) if !path.is_empty() => format!("{scheme}://{host}/…").into(),
            Some(_) | None => self.value.clone(),
        }
    }
}

/// Returns all settings, sorted by key, then the variables that have no key.
pub fn effective_settings(app: &App) -> Result<Vec<EffectiveSetting>, AppError> {
    let layers = app.layers();
    let merged = merge_settings(&layers)?;
    let findings = &merged.findings;
    let mut settings: Vec<EffectiveSetting> = merged
        .values
        .iter()
        .map(|(key, value)| {
            let pending = findings
                .proposals
                .iter()
                .filter(|proposal| proposal.key == *key && !layers.approvals().covers(proposal));
            let refused = findings.overreach.iter().find(|value| value.key == *key);
            let origin = merged.origins.get(key);
            EffectiveSetting {
                key: key.clone(),
                value: written_value(key, value),
                origin: origin.cloned().unwrap_or(ValueOrigin::Default),
                pending: pending.map(|proposal| proposal.value.clone()).collect(),
                refused: refused.map(|value| value.value.clone()),
            }
        })
        .collect();
    apply_environment(&mut settings, app)?;
    Ok(settings)
}

fn written_value(key: &str, value: &Value) -> Value {
    match value.as_u64() {
        Some(bytes) if MEMORY_KEYS.contains(&key) => Memory::written(bytes).into(),
        Some(_) | None => value.clone(),
    }
}

/// Applies the variables of the environment, which override the files.
fn apply_environment(settings: &mut Vec<EffectiveSetting>, app: &App) -> Result<(), AppError> {
    let request = RunRequest::for_file(Path::new(TASK_FILE));
    let provider = sandbox_choice::provider_name(&request, None, app)?;
    let environment = app.environment();
    // Another provider than that of the variable isolates more.
    let chosen = environment
        .default_provider()
        .filter(|name| *name == provider);
    let docker_host = environment.docker_host().map(|host| vec![host]);
    let (default, fallback) = (
        environment.default_profile(),
        environment.fallback_profile(),
    );
    let variables = [
        (
            "sandbox.provider",
            "RALPH_DEFAULT_PROVIDER",
            chosen.map(Value::from),
        ),
        (
            "sandbox.docker.hosts",
            "DOCKER_HOST",
            docker_host.map(Value::from),
        ),
        (
            "github.api_url",
            GITHUB_API_VARIABLE,
            environment.github_api_url().map(Value::from),
        ),
        (DEFAULT_PROFILE, DEFAULT_PROFILE, default.map(Value::from)),
        (
            FALLBACK_PROFILE,
            FALLBACK_PROFILE,
            fallback.map(Value::from),
        ),
    ];
    for (key, name, value) in variables {
        let Some(value) = value else {
            continue;
        };
        let origin = if environment.is_from_dotenv(name) {
            ValueOrigin::Dotenv(name)
        } else {
            ValueOrigin::Environment(name)
        };
        match settings.iter_mut().find(|setting| setting.key == key) {
            Some(setting) => {
                setting.value = value;
                setting.origin = origin;
            }
            None => settings.push(EffectiveSetting {
                key: key.to_owned(),
                value,
                origin,
                pending: Vec::new(),
                refused: None,
            }),
        }
    }
    Ok(())
}

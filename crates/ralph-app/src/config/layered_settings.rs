//! `ralph.toml` in layers: defaults, the user's file, the repository's file.

use std::collections::BTreeMap;

use ralph_core::trust::{
    TrustAuthority, TrustFile, TrustProposal, TrustRule, UserOnlyValue, judge,
};
use serde_json::Value;

use super::error::{self, ConfigFileError};
use super::layers::{ConfigLayers, Layered, TrustFindings};
use super::settings::Settings;

/// Lists that a repository extends, so that it cannot shorten the user's.
const EXTENDED_LISTS: [&str; 2] = ["sandbox.network.inspect", "git.protected_branches"];

/// Keys whose stronger value applies without an approval.
const STRONGER_WINS_KEYS: [&str; 2] = ["sandbox.enabled", "sandbox.provider"];

const POLICY_KEY: &str = "sandbox.network.policy";
const ALLOWED_KEY: &str = "sandbox.network.allowed";

/// Returns the effective settings of a directory.
pub fn load_settings(layers: &ConfigLayers) -> Result<Layered<Settings>, ConfigFileError> {
    let (base, _) = user_settings(layers)?;
    let Some(file) = layers.repository_file(TrustFile::Settings) else {
        let findings = TrustFindings::default();
        return Ok(Layered {
            value: base,
            findings,
        });
    };
    let text = file.read()?;
    let requested = flatten(&Settings::parse(&file.path, &text)?);
    let mut merge = SettingsMerge {
        layers,
        file: file.display_name(),
        values: flatten(&base),
        findings: TrustFindings::default(),
    };
    let keys = set_keys(&text);
    let policy = if keys.iter().any(|key| key == POLICY_KEY) {
        &requested[POLICY_KEY]
    } else {
        &merge.values[POLICY_KEY]
    };
    let is_idle = policy == "deny";
    for key in keys {
        let Some(value) = requested.get(&key) else {
            continue;
        };
        if is_idle && key == ALLOWED_KEY {
            // Listed hosts have no effect with this policy, which the plan reports.
            merge.values.insert(key, value.clone());
            continue;
        }
        if key == ALLOWED_KEY {
            let hosts = value.as_array().into_iter().flatten();
            let hosts = hosts.filter_map(Value::as_str);
            ConfigFileError::require_hosts((&file.path, &text), hosts)?;
        }
        merge.apply_key(&key, value);
    }
    let wrong = |why: String| ConfigFileError::invalid_at(&file.path, &text, 0, why);
    let value = serde_json::from_value(unflatten(merge.values))
        .map_err(|error| wrong(error.to_string()))?;
    Ok(Layered {
        value,
        findings: merge.findings,
    })
}

/// Returns the sandbox provider of the user's `ralph.toml`, if it sets one.
pub fn user_provider(layers: &ConfigLayers) -> Result<Option<String>, ConfigFileError> {
    let (settings, keys) = user_settings(layers)?;
    let is_chosen = STRONGER_WINS_KEYS
        .iter()
        .any(|chosen| keys.iter().any(|key| key == chosen));
    Ok(is_chosen.then(|| settings.sandbox_provider().to_owned()))
}

/// Returns the settings without the repository's file, and the keys that the user's file sets.
fn user_settings(layers: &ConfigLayers) -> Result<(Settings, Vec<String>), ConfigFileError> {
    let Some(path) = layers.user_file(TrustFile::Settings) else {
        return Ok((Settings::default(), Vec::new()));
    };
    let text = error::read_user_file(&path)?;
    Ok((Settings::parse(&path, &text)?, set_keys(&text)))
}

/// Applies the values of a repository's file to the effective settings.
struct SettingsMerge<'a> {
    layers: &'a ConfigLayers,
    file: String,
    values: BTreeMap<String, Value>,
    findings: TrustFindings,
}

impl SettingsMerge<'_> {
    fn apply_key(&mut self, key: &str, value: &Value) {
        let current = self.values.get(key).cloned();
        if EXTENDED_LISTS.contains(&key) {
            let all = union(current.as_ref(), value);
            self.values.insert(key.to_owned(), all);
            return;
        }
        let (authority, rule) = judge(TrustFile::Settings, key, value, current.as_ref());
        match (authority, rule) {
            (TrustAuthority::Harmless, _) => {
                self.values.insert(key.to_owned(), value.clone());
            }
            (TrustAuthority::Proposal, Some(rule)) => {
                let known = current.unwrap_or_default();
                if let Some(value) = self.approved_part(key, value, &known, rule) {
                    self.values.insert(key.to_owned(), value);
                }
            }
            (TrustAuthority::UserOnly | TrustAuthority::Proposal, rule) => {
                self.report_overreach(key, value, rule);
            }
        }
    }

    /// Returns the approved part of a proposed value: of a list, the approved items.
    fn approved_part(
        &mut self,
        key: &str,
        value: &Value,
        current: &Value,
        rule: &TrustRule,
    ) -> Option<Value> {
        let mut is_approved = |value: &Value| {
            let proposal = TrustProposal::new(&*self.file, key, &display_value(value), rule);
            let is_approved = self.layers.approvals().covers(&proposal);
            self.findings.proposals.push(proposal);
            is_approved
        };
        let Some(items) = value.as_array() else {
            return is_approved(value).then(|| value.clone());
        };
        let known = current.as_array().map(Vec::as_slice).unwrap_or_default();
        let items = items
            .iter()
            .filter(|item| known.contains(item) || is_approved(item));
        Some(items.cloned().collect())
    }

    fn report_overreach(&mut self, key: &str, value: &Value, rule: Option<&'static TrustRule>) {
        let Some(rule) = rule else {
            return;
        };
        let overreach = UserOnlyValue::new(
            &*self.file,
            TrustFile::Settings,
            key,
            &display_value(value),
            rule,
        );
        if STRONGER_WINS_KEYS.contains(&key) {
            self.findings.notes.push(format!(
                "`{key}` of `{}` is not used: it may isolate less than the sandbox that you chose",
                self.file
            ));
        } else {
            self.findings.overreach.push(overreach);
        }
    }
}

fn union(current: Option<&Value>, added: &Value) -> Value {
    let mut all = current
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for item in added.as_array().into_iter().flatten() {
        if !all.contains(item) {
            all.push(item.clone());
        }
    }
    Value::Array(all)
}

/// Formats a value for messages.
pub(super) fn display_value(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the keys that a text sets, in dotted form. [`Settings::parse`] must have accepted it.
fn set_keys(text: &str) -> Vec<String> {
    fn collect(table: &toml::Table, prefix: &str, names: &mut Vec<String>) {
        for (key, value) in table {
            match value.as_table() {
                Some(inner) => collect(inner, &format!("{prefix}{key}."), names),
                None => names.push(format!("{prefix}{key}")),
            }
        }
    }
    let mut names = Vec::new();
    let table: toml::Table = text.parse().expect("the text was parsed before");
    collect(&table, "", &mut names);
    names
}

/// Returns all values by dotted key.
fn flatten(settings: &Settings) -> BTreeMap<String, Value> {
    fn collect(value: Value, prefix: &str, all: &mut BTreeMap<String, Value>) {
        let Value::Object(fields) = value else {
            all.insert(prefix.to_owned(), value);
            return;
        };
        for (name, value) in fields {
            let key = if prefix.is_empty() {
                name
            } else {
                format!("{prefix}.{name}")
            };
            collect(value, &key, all);
        }
    }
    let mut all = BTreeMap::new();
    let value = serde_json::to_value(settings).expect("settings are valid JSON");
    collect(value, "", &mut all);
    all
}

/// Converts values by dotted key to nested tables.
fn unflatten(values: BTreeMap<String, Value>) -> Value {
    let mut root = Value::Object(serde_json::Map::new());
    for (key, value) in values {
        let mut target = &mut root;
        for part in key.split('.') {
            target = &mut target[part];
        }
        *target = value;
    }
    root
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ralph_core::trust::rule;

    use super::*;
    use crate::config::{Environment, NetworkPolicySetting};

    #[test]
    fn every_key_is_in_the_table() {
        for key in flatten(&Settings::default()).into_keys() {
            assert!(rule(TrustFile::Settings, &key, None).is_some(), "{key}");
        }
    }

    fn layered(own: &str, repository: &str) -> Layered<Settings> {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("project");
        fs::create_dir_all(&project).unwrap();
        fs::write(root.path().join("ralph.toml"), own).unwrap();
        fs::write(project.join("ralph.toml"), repository).unwrap();
        let user = root.path().display().to_string();
        let environment = Environment::for_test(&[("RALPH_CONFIG_DIR", &user)]);
        load_settings(&ConfigLayers::for_directory(&environment, &project)).unwrap()
    }

    #[test]
    fn a_repository_can_tune_and_propose_but_not_decide() {
        let Layered { value, findings } = layered(
            "[sandbox]\nprovider = \"docker\"\n[git]\nprotected_branches = [\"mine\"]\n\
             [sandbox.resources]\nmemory = \"2g\"\n",
            "[sandbox]\nprovider = \"local\"\nimage = \"theirs\"\n[sandbox.network]\n\
             policy = \"allow-all\"\nallowed = [\"evil.example\"]\n[sandbox.docker]\n\
             hosts = [\"tcp://evil.example:2375\"]\n[git]\nprotected_branches = [\"theirs\"]\n\
             [sandbox.resources]\nmemory = \"1g\"\nprocesses = 100000\n[monitoring]\nshow_progress = false\n",
        );
        assert_eq!(value.sandbox.provider, "docker");
        assert_eq!(value.sandbox.image, "theirs");
        assert_eq!(value.sandbox.network.policy, NetworkPolicySetting::Deny);
        assert_eq!(value.sandbox.network.allowed, Vec::<String>::new());
        assert_eq!(value.sandbox.docker.hosts, Vec::<String>::new());
        assert_eq!(value.sandbox.resources.memory.bytes(), 1 << 30);
        assert_eq!(value.sandbox.resources.processes, 512);
        assert_eq!(value.git.protected_branches, ["mine", "theirs"]);
        assert!(!value.monitoring.show_progress);
        let overreach: Vec<&str> = findings.overreach.iter().map(|o| o.key.as_str()).collect();
        assert_eq!(
            overreach,
            ["sandbox.docker.hosts", "sandbox.network.policy"]
        );
        let proposed: Vec<(&str, &str)> = findings
            .proposals
            .iter()
            .map(|p| (p.key.as_str(), p.value.as_str()))
            .collect();
        assert_eq!(
            proposed,
            [
                ("sandbox.network.allowed", "evil.example"),
                ("sandbox.resources.processes", "100000"),
            ]
        );
        assert_eq!(findings.notes.len(), 1, "{:?}", findings.notes);
    }

    #[test]
    fn a_copy_of_the_users_file_needs_no_approval() {
        let text = "[sandbox.network]\npolicy = \"allow-all\"\n[sandbox.docker]\nhosts = [\"tcp://build:2375\"]\n";
        let Layered { value, findings } = layered(text, text);
        assert_eq!(value.sandbox.network.policy, NetworkPolicySetting::AllowAll);
        assert_eq!(value.sandbox.docker.hosts, ["tcp://build:2375"]);
        assert_eq!(findings, TrustFindings::default());
    }
}

//! `ralph.toml` in layers: defaults, the user's file, the repository's files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ralph_core::trust::{
    TrustAuthority, TrustFile, TrustProposal, TrustRule, UserOnlyValue, judge,
};
use serde_json::Value;

use super::agent_loop;
use super::error::{self, ConfigFileError};
use super::layers::{ConfigLayers, Layered, TrustFindings};
use super::project_file::ProjectFile;
use super::settings::Settings;

/// Lists that a repository extends, so that it cannot shorten the user's.
const EXTENDED_LISTS: [&str; 2] = ["sandbox.network.inspect", "git.protected_branches"];

/// Keys whose stronger value applies without an approval.
const STRONGER_WINS_KEYS: [&str; 2] = ["sandbox.enabled", "sandbox.provider"];

const POLICY_KEY: &str = "sandbox.network.policy";
/// The key of the command that installs the dependencies.
pub(crate) const SETUP_COMMAND_KEY: &str = "sandbox.setup_command";
const ALLOWED_KEY: &str = "sandbox.network.allowed";

/// The layer that a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueOrigin {
    /// The default of this version.
    Default,
    /// The user's file.
    UserFile(PathBuf),
    /// A file of the repository.
    ProjectFile(PathBuf),
    /// A variable of the environment.
    Environment(&'static str),
    /// A variable of the `.env` in the working directory.
    Dotenv(&'static str),
}

/// The effective settings by dotted key.
pub(crate) struct MergedSettings {
    pub(crate) values: BTreeMap<String, Value>,
    /// The keys that a file sets. All others have their default.
    pub(crate) origins: BTreeMap<String, ValueOrigin>,
    pub(crate) findings: TrustFindings,
}

/// Returns the effective settings of a directory.
pub fn load_settings(layers: &ConfigLayers) -> Result<Layered<Settings>, ConfigFileError> {
    let merged = merge_settings(layers)?;
    // Every value was accepted on its own, so this can only fail for a combination of them.
    let value = serde_json::from_value(unflatten(merged.values)).map_err(|error| {
        let path = layers.repository_file(TrustFile::Settings);
        let path = path.map_or_else(|| Settings::FILE.into(), |file| file.path);
        ConfigFileError::invalid_at(&path, "", 0, error.to_string())
    })?;
    Ok(Layered {
        value,
        findings: merged.findings,
    })
}

/// Applies all layers, and records the layer of each value.
pub(crate) fn merge_settings(layers: &ConfigLayers) -> Result<MergedSettings, ConfigFileError> {
    let user = user_settings(layers)?;
    let user_origin = user
        .path
        .map_or(ValueOrigin::Default, ValueOrigin::UserFile);
    let origins = user.keys.into_iter().map(|key| (key, user_origin.clone()));
    let mut merge = SettingsMerge {
        layers,
        file: String::new(),
        origin: ValueOrigin::Default,
        values: flatten(&user.settings),
        origins: origins.collect(),
        findings: TrustFindings::default(),
    };
    let file = layers.repository_file(TrustFile::Settings);
    let requested = file.as_ref().map(RequestedSettings::read).transpose()?;
    let chooses_sandbox = requested
        .as_ref()
        .is_some_and(RequestedSettings::chooses_sandbox);
    if let Some(settings) = agent_loop::agent_loop_settings(layers)? {
        merge.use_file(&settings.file);
        if let Some(provider) = settings.provider.filter(|_| !chooses_sandbox) {
            merge.apply_key("sandbox.provider", &provider.into());
        }
        if let Some(command) = settings.setup_command {
            merge.apply_key(SETUP_COMMAND_KEY, &command.into());
        }
    }
    if let (Some(file), Some(requested)) = (&file, requested) {
        merge.use_file(file);
        merge.apply_file(file, requested)?;
    }
    Ok(MergedSettings {
        values: merge.values,
        origins: merge.origins,
        findings: merge.findings,
    })
}

/// The content of a repository's `ralph.toml`.
struct RequestedSettings {
    text: String,
    /// The keys that the file sets.
    keys: Vec<String>,
    values: BTreeMap<String, Value>,
}

impl RequestedSettings {
    fn read(file: &ProjectFile) -> Result<Self, ConfigFileError> {
        let text = file.read()?;
        let values = flatten(&Settings::parse(&file.path, &text)?);
        Ok(Self {
            keys: set_keys(&text),
            text,
            values,
        })
    }

    fn chooses_sandbox(&self) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|key| STRONGER_WINS_KEYS.contains(&key.as_str()))
    }
}

/// Returns the sandbox provider of the user's settings, if they set one.
pub fn user_provider(layers: &ConfigLayers) -> Result<Option<String>, ConfigFileError> {
    let UserSettings { settings, keys, .. } = user_settings(layers)?;
    let is_chosen = STRONGER_WINS_KEYS
        .iter()
        .any(|chosen| keys.iter().any(|key| key == chosen));
    Ok(is_chosen.then(|| settings.sandbox_provider().to_owned()))
}

/// Returns the settings without the repository's files.
pub fn load_user_settings(layers: &ConfigLayers) -> Result<Settings, ConfigFileError> {
    Ok(user_settings(layers)?.settings)
}

/// The settings without the repository's files.
struct UserSettings {
    settings: Settings,
    /// The keys that the user's file sets.
    keys: Vec<String>,
    /// The user's file, if it exists.
    path: Option<PathBuf>,
}

fn user_settings(layers: &ConfigLayers) -> Result<UserSettings, ConfigFileError> {
    let Some(path) = layers.user_file(TrustFile::Settings)? else {
        return Ok(UserSettings {
            settings: Settings::default(),
            keys: Vec::new(),
            path: None,
        });
    };
    let text = error::read_user_file(&path)?;
    Ok(UserSettings {
        settings: Settings::parse(&path, &text)?,
        keys: set_keys(&text),
        path: Some(path),
    })
}

/// Applies the values of a repository's files to the effective settings.
struct SettingsMerge<'a> {
    layers: &'a ConfigLayers,
    /// The name of the file being applied, for messages and approvals.
    file: String,
    origin: ValueOrigin,
    values: BTreeMap<String, Value>,
    origins: BTreeMap<String, ValueOrigin>,
    findings: TrustFindings,
}

impl SettingsMerge<'_> {
    fn use_file(&mut self, file: &ProjectFile) {
        self.file = file.display_name();
        self.origin = ValueOrigin::ProjectFile(file.path.clone());
    }

    fn set(&mut self, key: &str, value: Value) {
        self.origins.insert(key.to_owned(), self.origin.clone());
        self.values.insert(key.to_owned(), value);
    }

    /// Applies all keys that a `ralph.toml` sets.
    fn apply_file(
        &mut self,
        file: &ProjectFile,
        requested: RequestedSettings,
    ) -> Result<(), ConfigFileError> {
        let RequestedSettings { text, keys, values } = requested;
        let policy = if keys.iter().any(|key| key == POLICY_KEY) {
            &values[POLICY_KEY]
        } else {
            &self.values[POLICY_KEY]
        };
        let is_idle = policy == "deny";
        for key in keys {
            let Some(value) = values.get(&key) else {
                continue;
            };
            if is_idle && key == ALLOWED_KEY {
                // Listed hosts have no effect with this policy, which the plan reports.
                self.set(&key, value.clone());
                continue;
            }
            if key == ALLOWED_KEY {
                let hosts = value.as_array().into_iter().flatten();
                let hosts = hosts.filter_map(Value::as_str);
                ConfigFileError::require_hosts((&file.path, &text), hosts)?;
            }
            self.apply_key(&key, value);
        }
        Ok(())
    }

    fn apply_key(&mut self, key: &str, value: &Value) {
        let current = self.values.get(key).cloned();
        if EXTENDED_LISTS.contains(&key) {
            let all = union(current.as_ref(), value);
            self.set(key, all);
            return;
        }
        let (authority, rule) = judge(TrustFile::Settings, key, value, current.as_ref());
        match (authority, rule) {
            (TrustAuthority::Harmless, _) => self.set(key, value.clone()),
            (TrustAuthority::Proposal, Some(rule)) => {
                let known = current.unwrap_or_default();
                if let Some(value) = self.approved_part(key, value, &known, rule) {
                    self.set(key, value);
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
    fn the_users_file_has_one_of_two_names() {
        let root = tempfile::tempdir().unwrap();
        let user = root.path().display().to_string();
        let environment = Environment::for_test(&[("RALPH_CONFIG_DIR", &user)]);
        let layers = ConfigLayers::for_directory(&environment, root.path());
        fs::write(
            root.path().join("config.toml"),
            "[git.worktree]\nname = \"me\"\n",
        )
        .unwrap();
        let merged = merge_settings(&layers).unwrap();
        assert_eq!(merged.values["git.worktree.name"], "me");
        let origin = ValueOrigin::UserFile(root.path().join("config.toml"));
        let origins = BTreeMap::from([("git.worktree.name".to_owned(), origin)]);
        assert_eq!(merged.origins, origins);
        fs::write(root.path().join("ralph.toml"), "").unwrap();
        let error = load_settings(&layers).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("`{user}/config.toml` and `{user}/ralph.toml` both exist")
        );
    }

    #[test]
    fn the_type_in_an_agent_loop_directory_is_the_repositorys_provider() {
        let provider = |json: &str, toml: &str| {
            let root = tempfile::tempdir().unwrap();
            let project = root.path().join("project");
            fs::create_dir_all(project.join(".agent-loop")).unwrap();
            fs::write(project.join(".agent-loop/config.json"), json).unwrap();
            fs::write(project.join("ralph.toml"), toml).unwrap();
            let user = root.path().join("user").display().to_string();
            let environment = Environment::for_test(&[("RALPH_CONFIG_DIR", &user)]);
            let layers = ConfigLayers::for_directory(&environment, &project);
            let settings = load_settings(&layers).map_err(|error| error.to_string());
            settings.map(|settings| settings.value.sandbox.provider)
        };
        assert_eq!(provider("{}", ""), Ok("local".into()));
        assert_eq!(provider(r#"{"type": "docker"}"#, ""), Ok("docker".into()));
        let toml = "[sandbox]\nprovider = \"local\"\n";
        assert_eq!(provider(r#"{"type": "docker"}"#, toml), Ok("local".into()));
        for (json, why) in [
            (
                r#"{"type": "dcoker"}"#,
                "`dcoker` is not a sandbox provider; did you mean `docker`?",
            ),
            (
                r#"{"type": "x"}"#,
                "`x` is not a sandbox provider; there are local, docker, docker-sandbox, tart, daytona",
            ),
            (r#"{"hosts": []}"#, "unknown field `hosts`, expected `type`"),
            ("[1]", "invalid type"),
        ] {
            let error = provider(json, "").unwrap_err();
            assert!(error.contains(why), "{error}");
        }
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

//! The environment, read once. No other module reads environment variables.
//!
//! A `.env` in the working directory adds settings and credentials; the real environment takes
//! precedence. The location of ralph's state and the search path for programs never come from a
//! `.env`: the working directory may be an untrusted repository.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use ralph_core::parse_value;
use ralph_core::path::absolute_search_path;
use ralph_core::secret::Secret;

use super::dotenv;
use super::regular_file::{RegularFileError, project_root, read_regular};
use crate::error::AppError;
use crate::tokens::BaseUrl;

/// The variables that a `.env` may set in addition to credentials.
const DOTENV_VARIABLES: [&str; 7] = [
    "GITHUB_APP_ID",
    "GITHUB_APP_INSTALLATION_ID",
    "RALPH_DEFAULT_MODEL_PROFILE",
    "RALPH_FALLBACK_MODEL_PROFILE",
    "RALPH_PORT",
    "RALPH_WORKERS",
    PROVIDER_VARIABLE,
];

/// The variables with directories that may be relative to the working directory.
const DIRECTORY_VARIABLES: [&str; 2] = ["RALPH_HOME", "RALPH_CONFIG_DIR"];

/// The variable with the default sandbox provider.
const PROVIDER_VARIABLE: &str = "RALPH_DEFAULT_PROVIDER";

/// The variable with the token of the server.
const SERVER_TOKEN_VARIABLE: &str = "RALPH_TOKEN";

/// Variables with the location of a toolchain, and the default location below the home directory.
const TOOLCHAIN_VARIABLES: [(&str, Option<&str>); 9] = [
    ("ASDF_DATA_DIR", Some(".asdf")),
    ("GOROOT", None),
    ("JAVA_HOME", None),
    ("NVM_DIR", Some(".nvm")),
    ("PYENV_ROOT", Some(".pyenv")),
    ("RBENV_ROOT", Some(".rbenv")),
    ("RUSTUP_HOME", Some(".rustup")),
    ("SDKMAN_DIR", Some(".sdkman")),
    ("VOLTA_HOME", Some(".volta")),
];

/// The variable with the address of GitHub's API.
pub(crate) const GITHUB_API_VARIABLE: &str = "GITHUB_API_URL";

/// The variables that contain credentials of agents.
const AGENT_CREDENTIALS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "CURSOR_API_KEY",
    "OPENAI_API_KEY",
];

/// The number of bytes of a `.env` that are read.
const MAX_DOTENV_BYTES: u64 = 256 * 1024;

/// The environment. Its `Debug` output shows no values, because they may be secrets.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// The names of the variables from a `.env`.
    from_dotenv: BTreeSet<String>,
    directory: PathBuf,
    /// The reason why the `.env` was not read.
    dotenv_problem: Option<String>,
}

/// The variables of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableLayer {
    /// The variables of the process.
    Process,
    /// Also the variables of the `.env` in the working directory.
    WithDotenv,
}

/// The location of the state directory is unknown.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the location of the state directory is unknown: neither RALPH_HOME nor HOME is set")]
pub struct NoStateDirError;

impl Environment {
    /// Creates the environment from the variables and the working directory of a process, and reads
    /// the `.env` there.
    pub fn new(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        directory: PathBuf,
    ) -> Self {
        let (dotenv, problem) = match read_dotenv(&directory) {
            Ok(text) => (text, None),
            Err(error) if error.is_missing() => (String::new(), None),
            Err(error) => (String::new(), Some(error.to_string())),
        };
        Self {
            dotenv_problem: problem,
            ..Self::from_variables(variables, directory, &dotenv)
        }
    }

    /// Returns this environment as it would be with another working directory: with the `.env`
    /// there, and with the same directories for state and configuration.
    #[must_use]
    pub fn in_directory(&self, directory: &Path) -> Self {
        let variables = self.variables.iter();
        let own = variables.filter(|(name, _)| !self.from_dotenv.contains(*name));
        let own = own.map(|(name, value)| {
            let value = if DIRECTORY_VARIABLES.contains(&name.as_str()) && !value.is_empty() {
                self.directory.join(value).into_os_string()
            } else {
                value.into()
            };
            (name.into(), value)
        });
        Self::new(own, directory.to_owned())
    }

    /// Returns this environment with another state directory. The index of its runs is in that directory,
    /// too.
    #[must_use]
    pub fn with_state_dir(&self, directory: &str) -> Self {
        let mut environment = self.clone();
        environment.from_dotenv.remove("RALPH_HOME");
        environment
            .variables
            .insert("RALPH_HOME".to_owned(), directory.to_owned());
        environment.variables.remove("RALPH_DB_URL");
        environment
    }

    fn from_variables(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        directory: PathBuf,
        dotenv: &str,
    ) -> Self {
        let mut all: BTreeMap<String, String> = dotenv::parse(dotenv)
            .into_iter()
            .filter(|(name, _)| DOTENV_VARIABLES.contains(&name.as_str()) || is_secret_name(name))
            .collect();
        let mut from_dotenv: BTreeSet<String> = all.keys().cloned().collect();
        for (name, value) in variables {
            if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) {
                from_dotenv.remove(&name);
                all.insert(name, value);
            }
        }
        if let Some(path) = all.get_mut("PATH") {
            *path = absolute_search_path(path);
        }
        Self {
            variables: all,
            from_dotenv,
            directory,
            dotenv_problem: None,
        }
    }

    /// Creates an environment from these variables only.
    #[cfg(test)]
    pub(crate) fn for_test(variables: &[(&str, &str)]) -> Self {
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Self::from_variables(variables, PathBuf::from("/"), "")
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns the value of a variable, to compare it with that of another environment.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.get(name)
    }

    /// Returns the names of the variables that do not come from a `.env`.
    pub(crate) fn own_names(&self) -> impl Iterator<Item = &str> {
        let names = self.variables.keys().map(String::as_str);
        names.filter(|name| !self.from_dotenv.contains(*name))
    }

    /// Returns the working directory.
    pub fn working_dir(&self) -> &Path {
        &self.directory
    }

    /// Returns the state directory: `RALPH_HOME`, or `ralph` in the user's state directory.
    pub fn state_dir(&self) -> Result<PathBuf, NoStateDirError> {
        if let Some(home) = self.get("RALPH_HOME") {
            return Ok(self.directory.join(home));
        }
        // The XDG specification says to ignore relative paths.
        let state = self
            .get("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| {
                let home = self.get("HOME")?;
                Some(Path::new(home).join(".local/state"))
            });
        state
            .map(|state| state.join("ralph"))
            .ok_or(NoStateDirError)
    }

    /// Returns the address of the index's database. A `.env` cannot set it.
    pub fn database_url(&self) -> Option<&str> {
        let is_own = !self.from_dotenv.contains("RALPH_DB_URL");
        self.get("RALPH_DB_URL").filter(|_| is_own)
    }

    /// Returns the user's configuration directory: `RALPH_CONFIG_DIR`, or `ralph` in the user's
    /// general configuration directory.
    pub fn config_dir(&self) -> Option<PathBuf> {
        if let Some(directory) = self.get("RALPH_CONFIG_DIR") {
            return Some(self.directory.join(directory));
        }
        let config = self
            .get("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let config = config.or_else(|| Some(self.home()?.join(".config")))?;
        Some(config.join("ralph"))
    }

    /// Returns why an existing `.env` in the working directory was not read.
    pub fn dotenv_problem(&self) -> Option<&str> {
        self.dotenv_problem.as_deref()
    }

    /// Returns a variable that names registries of a package manager. A `.env` cannot set it.
    pub fn registry_variable(&self, name: &str) -> Option<&str> {
        let is_own = !self.from_dotenv.contains(name);
        self.get(name).filter(|_| is_own)
    }

    /// Returns the user's home directory.
    pub fn home(&self) -> Option<&Path> {
        self.get("HOME").map(Path::new)
    }

    /// Returns the absolute directories of `PATH`.
    pub fn search_path(&self) -> Option<&str> {
        self.get("PATH")
    }

    /// Returns whether colours are allowed: `NO_COLOR` is not set.
    pub fn wants_colour(&self) -> bool {
        self.get("NO_COLOR").is_none()
    }

    /// Returns whether the terminal supports no escape sequences.
    pub fn is_dumb_terminal(&self) -> bool {
        self.get("TERM") == Some("dumb")
    }

    /// Returns the filter of the diagnostics log from `RALPH_LOG`.
    pub fn log_filter(&self) -> Option<&str> {
        self.get("RALPH_LOG")
    }

    /// Returns the width of the terminal according to the shell.
    pub fn columns(&self) -> Option<usize> {
        let columns: usize = parse_value(self.get("COLUMNS")?)?;
        (columns > 0).then_some(columns)
    }

    /// Returns the model profile for tasks that name none.
    pub fn default_profile(&self) -> Option<&str> {
        self.get("RALPH_DEFAULT_MODEL_PROFILE")
    }

    /// Returns the fallback profile for tasks that name none.
    pub fn fallback_profile(&self) -> Option<&str> {
        self.get("RALPH_FALLBACK_MODEL_PROFILE")
    }

    /// Returns the address of the Docker Engine that the user's other tools use.
    pub fn docker_host(&self) -> Option<&str> {
        self.get("DOCKER_HOST")
    }

    /// Returns the sandbox provider from the real environment. A repository's file may not choose a
    /// weaker one.
    pub fn user_provider(&self) -> Option<&str> {
        self.get(PROVIDER_VARIABLE)
            .filter(|_| !self.from_dotenv.contains(PROVIDER_VARIABLE))
    }

    /// Returns the sandbox provider for tasks that name none: the user's, or that of a `.env`.
    pub fn default_provider(&self) -> Option<&str> {
        self.get(PROVIDER_VARIABLE)
    }

    /// Returns whether a variable comes from the `.env` in the working directory.
    pub fn is_from_dotenv(&self, name: &str) -> bool {
        self.from_dotenv.contains(name)
    }

    /// Returns the value of a variable if its name marks it as a credential.
    pub fn credential(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|_| is_secret_name(name))
    }

    /// Returns the credentials of agents with the names of their variables.
    pub fn agent_credentials(&self) -> Vec<(&'static str, Secret)> {
        AGENT_CREDENTIALS
            .into_iter()
            .filter_map(|name| Some((name, Secret::new(self.credential(name)?.to_owned()))))
            .collect()
    }

    /// Returns the address of the gateway that accepts `ANTHROPIC_AUTH_TOKEN`.
    pub fn gateway(&self) -> Option<BaseUrl> {
        match BaseUrl::parse(self.get("ANTHROPIC_BASE_URL")?) {
            Ok(address) => Some(address),
            Err(error) => {
                tracing::warn!(%error, "`ANTHROPIC_BASE_URL` is not used");
                None
            }
        }
    }

    /// Returns whether the name of a variable marks its value as a credential.
    pub fn is_credential_name(name: &str) -> bool {
        is_secret_name(name)
    }

    /// Returns the value of a variable with an API address. A `.env` cannot set one: it could send
    /// the user's credentials to any server.
    pub fn api_address(&self, name: &str) -> Option<&str> {
        let is_address = name.ends_with("_API_BASE") || name.ends_with("_BASE_URL");
        // The name may also be that of a credential, which a `.env` can set: `AUTH_API_BASE`.
        let is_users = !self.from_dotenv.contains(name);
        self.get(name).filter(|_| is_address && is_users)
    }

    /// Returns a variable of OpenTelemetry. A `.env` cannot set one: it could send measurements to any server.
    pub(crate) fn otel_variable(&self, name: &str) -> Option<&str> {
        let is_users = name.starts_with("OTEL_") && !self.from_dotenv.contains(name);
        self.get(name).map(str::trim).filter(|_| is_users)
    }

    /// Returns whether agents send their telemetry to ralph: `RALPH_AGENT_TELEMETRY` is `1` or `true`.
    pub fn wants_agent_telemetry(&self) -> bool {
        let is_users = !self.from_dotenv.contains("RALPH_AGENT_TELEMETRY");
        let value = self.get("RALPH_AGENT_TELEMETRY").filter(|_| is_users);
        matches!(value, Some("1" | "true"))
    }

    /// Returns the format of the log of `ralph serve` on standard error, from `RALPH_LOG_FORMAT`.
    pub fn log_format(&self) -> Option<&str> {
        self.get("RALPH_LOG_FORMAT")
    }

    /// Returns the address of GitHub's API. A `.env` cannot set it.
    pub fn github_api_url(&self) -> Option<&str> {
        let is_users = !self.from_dotenv.contains(GITHUB_API_VARIABLE);
        self.get(GITHUB_API_VARIABLE).filter(|_| is_users)
    }

    /// Returns a variable of a GitHub credential from a layer.
    pub fn github_variable(&self, name: &str, layer: VariableLayer) -> Option<&str> {
        let is_in_layer = match layer {
            VariableLayer::Process => !self.from_dotenv.contains(name),
            VariableLayer::WithDotenv => true,
        };
        self.get(name).filter(|_| is_in_layer)
    }

    /// Returns the proxy for a scheme, `http` or `https`.
    pub fn proxy(&self, scheme: &str) -> Option<&str> {
        let lowercase = format!("{scheme}_proxy");
        [
            lowercase.as_str(),
            &lowercase.to_uppercase(),
            "all_proxy",
            "ALL_PROXY",
        ]
        .into_iter()
        .find_map(|name| self.get(name))
    }

    /// Returns the hosts that are reached without a proxy.
    pub fn no_proxy(&self) -> Option<&str> {
        self.get("no_proxy").or(self.get("NO_PROXY"))
    }

    /// Returns the address on which the server listens. A `.env` cannot set it.
    pub fn server_host(&self) -> Option<&str> {
        self.get("RALPH_HOST")
    }

    /// Returns the port on which the server listens.
    pub fn server_port(&self) -> Option<&str> {
        self.get("RALPH_PORT")
    }

    /// Returns the number of runs that work at the same time.
    pub fn server_workers(&self) -> Option<&str> {
        self.get("RALPH_WORKERS")
    }

    /// Returns the token of the server. A `.env` cannot set it: the author of a repository would know it.
    pub fn server_token(&self) -> Option<Secret> {
        let token = self.get(SERVER_TOKEN_VARIABLE)?;
        let is_users = !self.from_dotenv.contains(SERVER_TOKEN_VARIABLE);
        is_users.then(|| Secret::new(token.to_owned()))
    }

    /// Returns whether a `.env` contains a token of the server, which is not used.
    pub fn has_ignored_server_token(&self) -> bool {
        self.from_dotenv.contains(SERVER_TOKEN_VARIABLE)
    }

    /// Returns the variables with proxies and certificates for git. Debian's git is built with `GnuTLS`
    /// and reads the certificates only from its own variables.
    pub fn transport_variables(&self) -> BTreeMap<String, String> {
        /// The variables with proxies.
        const PROXIES: [&str; 8] = [
            "ALL_PROXY",
            "HTTPS_PROXY",
            "HTTP_PROXY",
            "NO_PROXY",
            "all_proxy",
            "http_proxy",
            "https_proxy",
            "no_proxy",
        ];
        /// The variables with certificates, and those of git.
        const CERTIFICATES: [(&str, &str); 2] = [
            ("SSL_CERT_FILE", "GIT_SSL_CAINFO"),
            ("SSL_CERT_DIR", "GIT_SSL_CAPATH"),
        ];
        let proxies = PROXIES
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.get(name)?.to_owned())));
        let certificates = CERTIFICATES.into_iter().flat_map(|(name, git_name)| {
            let path = self.get(name).map(|path| self.directory.join(path));
            let path = path.map(|path| path.to_string_lossy().into_owned());
            [name, git_name].map(|name| Some((name.to_owned(), path.clone()?)))
        });
        proxies.chain(certificates.flatten()).collect()
    }

    /// Returns the variables with the locations of toolchains: as set, or the default locations.
    pub fn toolchains(&self) -> BTreeMap<String, String> {
        let default_location = |directory: &str| {
            let path = self.home()?.join(directory);
            path.is_dir().then(|| path.to_string_lossy().into_owned())
        };
        TOOLCHAIN_VARIABLES
            .into_iter()
            .filter_map(|(name, directory)| {
                let value = self
                    .get(name)
                    .map(str::to_owned)
                    .or_else(|| default_location(directory?))?;
                Some((name.to_owned(), value))
            })
            .collect()
    }

    /// Returns the names and values of all possible secrets for the redactor, which decides which
    /// values it can search for.
    pub fn secrets(&self) -> Vec<(String, String)> {
        self.variables
            .iter()
            .filter(|(name, value)| !value.trim().is_empty() && is_secret_name(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("directory", &self.directory)
            .field("variables", &self.variables.keys())
            .field("from_dotenv", &self.from_dotenv)
            .field("dotenv_problem", &self.dotenv_problem)
            .finish()
    }
}

/// Returns the start of a directory's `.env`, which must be a regular file in the same repository.
fn read_dotenv(directory: &Path) -> Result<String, RegularFileError> {
    let path = directory.join(".env");
    let file = read_regular(&path, project_root(directory), MAX_DOTENV_BYTES)?;
    Ok(String::from_utf8_lossy(&file.bytes).into_owned())
}

/// Returns whether the name of a variable marks its value as a secret.
fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let mut words = upper.split('_');
    // The location of a secret is not secret.
    let is_location = ["_SOCK", "_FILE", "_PATH", "_DIR"]
        .iter()
        .any(|ending| upper.ends_with(ending));
    let has_marker = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"]
        .iter()
        .any(|word| upper.contains(word));
    let has_word = words.any(|word| {
        matches!(word, "PAT" | "PEM" | "AUTH" | "AUTHORIZATION" | "KEYS") || word.ends_with("KEY")
    });
    !is_location && (has_marker || has_word)
}

impl From<NoStateDirError> for AppError {
    fn from(_: NoStateDirError) -> Self {
        Self::runtime(
            "the location of the state directory is unknown",
            "neither RALPH_HOME nor HOME is set",
            "set RALPH_HOME to a directory that you can write to",
        )
    }
}

#[cfg(test)]
mod tests;

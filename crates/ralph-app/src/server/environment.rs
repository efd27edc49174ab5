//! Compares the environment of a command with that of the server, which works on the run.
//!
//! The server reads the same configuration and the same `.env`, but not the variables of the caller's
//! shell. Only digests of their values are sent.

use std::collections::BTreeMap;

use ralph_core::id::Digest;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::config::Environment;
use crate::error::AppError;

/// The variables that choose something for a run, whether they are set or not.
const CHOICES: [&str; 6] = [
    "DOCKER_HOST",
    "GITHUB_API_URL",
    "RALPH_CONFIG_DIR",
    "RALPH_DEFAULT_MODEL_PROFILE",
    "RALPH_DEFAULT_PROVIDER",
    "RALPH_FALLBACK_MODEL_PROFILE",
];
/// The endings of variables with a credential or an address that a run can use.
const ENDINGS: [&str; 5] = [
    "_API_BASE",
    "_API_KEY",
    "_AUTH_TOKEN",
    "_BASE_URL",
    "_OAUTH_TOKEN",
];
/// The beginnings of variables with a credential for a source host.
const BEGINNINGS: [&str; 2] = ["GH_", "GITHUB_"];
/// The variable with the directories of programs.
const SEARCH_PATH: &str = "PATH";

/// The variables of a command that affect its run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallerEnvironment {
    /// The digest of each value; none for a variable that is not set.
    variables: BTreeMap<String, Option<Digest>>,
    /// The directories of programs.
    search_path: Vec<String>,
}

impl CallerEnvironment {
    /// Describes the environment of a command.
    pub fn of(app: &App) -> Self {
        let environment = app.environment();
        let choices = CHOICES.iter().map(|name| (*name).to_owned());
        let set = environment.own_names();
        let keys = profile_keys(app);
        let used = set.filter(|name| affects_runs(name) || keys.iter().any(|key| key == name));
        let names = choices.chain(used.map(str::to_owned));
        Self {
            variables: names
                .map(|name| (name.clone(), digest(environment, &name)))
                .collect(),
            search_path: directories(environment).map(str::to_owned).collect(),
        }
    }

    /// Returns an error that names the variables in which the server's environment differs.
    pub fn require_same(&self, server: &Environment) -> Result<(), AppError> {
        let names = self.differences(server);
        if names.is_empty() {
            return Ok(());
        }
        Err(AppError::runtime(
            "the server cannot work on this run",
            format!("its environment differs in {}", names.join(", ")),
            "use `--local`, or start the server with the same variables",
        ))
    }

    /// Returns the names of the variables that another environment does not have, or with another
    /// value.
    pub fn differences(&self, other: &Environment) -> Vec<String> {
        let variables = self.variables.iter();
        let mut names: Vec<String> = variables
            .filter(|(name, digest_here)| digest(other, name) != **digest_here)
            .map(|(name, _)| name.clone())
            .collect();
        let is_missing =
            |directory: &String| directories(other).all(|known| known != directory.as_str());
        if self.search_path.iter().any(is_missing) {
            names.push(SEARCH_PATH.to_owned());
        }
        names
    }
}

fn affects_runs(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
        || BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
}

/// Returns the variables that the user's profiles name. Invalid profiles are reported by the start.
fn profile_keys(app: &App) -> Vec<String> {
    match app.profiles() {
        Ok(profiles) => profiles.key_variables(),
        Err(error) => {
            tracing::debug!(%error, "the profiles name no variables");
            Vec::new()
        }
    }
}

fn digest(environment: &Environment, name: &str) -> Option<Digest> {
    if name == "RALPH_CONFIG_DIR" {
        // The default directory may be the same as the one that is set.
        let directory = environment.config_dir()?;
        return Some(Digest::compute(directory.to_string_lossy().as_bytes()));
    }
    let value = environment.value(name)?;
    Some(Digest::compute(value.as_bytes()))
}

fn directories(environment: &Environment) -> impl Iterator<Item = &str> {
    let path = environment.search_path().into_iter();
    path.flat_map(|path| path.split(':'))
        .filter(|directory| !directory.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_caller_has_alone_or_chooses_differs() {
        let differences = |caller: &[(&str, &str)], server: &[(&str, &str)]| {
            let caller = App::new(Environment::for_test(caller));
            let names = CallerEnvironment::of(&caller).differences(&Environment::for_test(server));
            names.join(" ")
        };
        let key = ("ACME_API_KEY", "secret-value");
        assert_eq!(differences(&[key], &[key]), "");
        assert_eq!(differences(&[key], &[]), "ACME_API_KEY");
        assert_eq!(
            differences(&[key], &[("ACME_API_KEY", "other")]),
            "ACME_API_KEY"
        );
        // A key that only the server has is not used by a run that does not name it.
        assert_eq!(differences(&[], &[key]), "");
        let profile = ("RALPH_DEFAULT_MODEL_PROFILE", "fast");
        assert_eq!(differences(&[], &[profile]), "RALPH_DEFAULT_MODEL_PROFILE");
        assert_eq!(differences(&[("TERM", "dumb")], &[]), "");
        assert_eq!(
            differences(&[("PATH", "/a:/b")], &[("PATH", "/c:/b:/a")]),
            ""
        );
        assert_eq!(differences(&[("PATH", "/a:/b")], &[("PATH", "/b")]), "PATH");
        let home = [("HOME", "/home/u")];
        let named = [
            ("HOME", "/home/u"),
            ("RALPH_CONFIG_DIR", "/home/u/.config/ralph"),
        ];
        assert_eq!(differences(&named, &home), "");
    }
}

//! Adds a host to `[sandbox.network]` in a project's `ralph.toml` and preserves the rest of the
//! file, including comments, order and spelling.

use std::fs;
use std::path::{Path, PathBuf};

use ralph_core::net::AllowlistEntry;
use ralph_engine::durable::{self, StoreError};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::error::ConfigFileError;
use super::project_file::ProjectFile;
use super::regular_file::project_root;
use super::settings::{NetworkPolicySetting, Settings};
use crate::error::AppError;

/// The indentation of a multi-line list without any indented line.
const INDENT: &str = "\n    ";

/// The result of adding a host to a project's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    pub path: PathBuf,
    pub is_changed: bool,
    /// The network policy after the change.
    pub policy: NetworkPolicySetting,
}

/// The reason why a host could not be added to a project's file.
#[derive(Debug, thiserror::Error)]
pub enum AllowHostError {
    /// The file is not usable.
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    /// The file cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Adds a host to the nearest `ralph.toml`, or to a new one at the root of the repository.
pub fn allow_host_in_project(
    directory: &Path,
    host: &AllowlistEntry,
) -> Result<AllowedHost, AllowHostError> {
    let existing = super::find_project_file(directory, Settings::FILE);
    let text = existing
        .as_ref()
        .map_or_else(|| Ok(String::new()), ProjectFile::read)?;
    let path = existing.map_or_else(
        || project_root(directory).join(Settings::FILE),
        |file| file.path,
    );
    let settings = Settings::parse(&path, &text)?;
    let edited = with_host(&path, &text, host, &settings)?;
    if let Some(edited) = &edited {
        replace_file(&path, edited)?;
    }
    let after = edited.as_deref().unwrap_or(&text);
    Ok(AllowedHost {
        policy: Settings::parse(&path, after)?.sandbox.network.policy,
        is_changed: edited.is_some(),
        path,
    })
}

/// Replaces the content of a file. Follows symbolic links and preserves the permissions.
fn replace_file(path: &Path, text: &str) -> Result<(), StoreError> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let permissions = fs::metadata(&path).map(|metadata| metadata.permissions());
    durable::write_shared(&path, text.as_bytes())?;
    if let Ok(permissions) = permissions {
        fs::set_permissions(&path, permissions)
            .map_err(StoreError::when("change the permissions of", &path))?;
    }
    Ok(())
}

/// Returns the text with the host added, or `None` if the host is already listed.
fn with_host(
    path: &Path,
    text: &str,
    host: &AllowlistEntry,
    settings: &Settings,
) -> Result<Option<String>, ConfigFileError> {
    let network = &settings.sandbox.network;
    if network
        .allowed
        .iter()
        .any(|existing| AllowlistEntry::parse(existing).as_ref() == Ok(host))
    {
        return Ok(None);
    }
    let wrong = |why: &str| ConfigFileError::invalid_at(path, text, 0, why.to_owned());
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let offset = error.span().map_or(0, |span| span.start);
        ConfigFileError::invalid_at(path, text, offset, error.message().replace('\n', ", "))
    })?;
    let table =
        network_table(&mut document).ok_or_else(|| wrong("`sandbox.network` is not a table"))?;
    // A policy that denies everything would also deny this host. Changing it must not allow other
    // hosts that are listed.
    if network.policy == NetworkPolicySetting::Deny && network.allowed.is_empty() {
        set_policy(table);
    }
    let list = table
        .entry("allowed")
        .or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let list = list
        .as_array_mut()
        .ok_or_else(|| wrong("`sandbox.network.allowed` is not a list"))?;
    push_host(list, &host.to_string());
    Ok(Some(document.to_string()))
}

/// Returns `[sandbox.network]` and creates it if it is missing.
fn network_table(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let sandbox = document.entry("sandbox").or_insert(Item::Table(implicit));
    let network = sandbox
        .as_table_like_mut()?
        .entry("network")
        .or_insert_with(|| Item::Table(Table::new()));
    network.as_table_like_mut()
}

fn set_policy(table: &mut dyn TableLike) {
    let allowlist = Value::from("allowlist");
    // Replaces only the value: a comment above belongs to the key.
    match table.get_mut("policy").and_then(Item::as_value_mut) {
        Some(existing) => {
            let decor = existing.decor().clone();
            *existing = allowlist;
            *existing.decor_mut() = decor;
        }
        None => drop(table.insert("policy", Item::Value(allowlist))),
    }
}

/// Appends a host in the format of the list. Text after the last host, such as a comment, stays
/// with that host.
fn push_host(list: &mut Array, host: &str) {
    let mut after = String::new();
    let mut before = String::new();
    let is_empty = list.is_empty();
    if let Some(last) = list.iter_mut().last() {
        let decor = last.decor_mut();
        let text = |raw: Option<&toml_edit::RawString>| {
            raw.and_then(|raw| raw.as_str()).map(str::to_owned)
        };
        after.push_str(&text(decor.suffix()).unwrap_or_default());
        before = text(decor.prefix()).unwrap_or_default();
        decor.set_suffix("");
    }
    after.push_str(list.trailing().as_str().unwrap_or_default());
    let (prefix, rest) = match after.rfind('\n') {
        Some(end) => {
            let indent = before.rfind('\n').map_or(INDENT, |start| &before[start..]);
            (
                format!("{}{indent}", after[..end].trim_end()),
                &after[end..],
            )
        }
        None if is_empty => (String::new(), ""),
        None => (" ".to_owned(), after.as_str()),
    };
    let mut value = Value::from(host);
    *value.decor_mut() = toml_edit::Decor::new(prefix, "");
    let has_comma = list.trailing_comma();
    list.push_formatted(value);
    list.set_trailing_comma(has_comma);
    list.set_trailing(rest);
}

impl From<AllowHostError> for AppError {
    fn from(error: AllowHostError) -> Self {
        match error {
            AllowHostError::Config(error) => error.into(),
            AllowHostError::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str) -> Option<String> {
        let path = Path::new("ralph.toml");
        let settings = Settings::parse(path, text).unwrap();
        with_host(
            path,
            text,
            &AllowlistEntry::parse("b.example").unwrap(),
            &settings,
        )
        .unwrap()
    }

    #[test]
    fn a_host_is_added_and_nothing_else_changes() {
        for (before, after) in [
            (
                "",
                "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\"b.example\"]\n",
            ),
            (
                "# mine\n[git.worktree]\nname = 'x' # who\n",
                "# mine\n[git.worktree]\nname = 'x' # who\n\n[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\"b.example\"]\n",
            ),
            (
                "[sandbox.network]\n# why\npolicy = \"deny\" # for now\nallowed = []\n\n[git]\n",
                "[sandbox.network]\n# why\npolicy = \"allowlist\" # for now\nallowed = [\"b.example\"]\n\n[git]\n",
            ),
            (
                "[sandbox.network]\npolicy = \"deny\"\nallowed = [ \"a.example\" ] # all\n",
                "[sandbox.network]\npolicy = \"deny\"\nallowed = [ \"a.example\", \"b.example\" ] # all\n",
            ),
            (
                "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\n  \"a.example\", # the first\n]\n",
                "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\n  \"a.example\", # the first\n  \"b.example\",\n]\n",
            ),
            (
                "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\n  \"a.example\" # the first\n]\n",
                "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\n  \"a.example\", # the first\n  \"b.example\"\n]\n",
            ),
            (
                "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\n  # none yet\n]\n",
                "[sandbox.network]\npolicy = \"allowlist\"\nallowed = [\n  # none yet\n    \"b.example\"\n]\n",
            ),
            (
                "sandbox = { provider = \"docker\", network = { policy = \"allow-all\" } }\n",
                "sandbox = { provider = \"docker\", network = { policy = \"allow-all\" , allowed = [\"b.example\"] } }\n",
            ),
            (
                "[sandbox]\nnetwork.policy = \"allowlist\"\n",
                "[sandbox]\nnetwork.policy = \"allowlist\"\nnetwork.allowed = [\"b.example\"]\n",
            ),
        ] {
            let once = edited(before).unwrap();
            assert_eq!(once, after, "{before}");
            assert_eq!(edited(&once), None, "{before}");
        }
        assert_eq!(
            edited("[sandbox.network]\nallowed = [\"B.Example.\"]\n"),
            None
        );
    }

    #[test]
    fn the_nearest_file_is_written_or_a_new_one_at_the_root() {
        let project = tempfile::tempdir().unwrap();
        let inner = project.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir(project.path().join(".git")).unwrap();
        let host = AllowlistEntry::parse("b.example").unwrap();
        let path = project.path().join("ralph.toml");
        let listed = |is_new| AllowedHost {
            path: path.clone(),
            is_changed: is_new,
            policy: NetworkPolicySetting::Allowlist,
        };
        assert_eq!(allow_host_in_project(&inner, &host).unwrap(), listed(true));
        assert_eq!(allow_host_in_project(&inner, &host).unwrap(), listed(false));
        let names: Vec<_> = fs::read_dir(project.path()).unwrap().collect();
        assert_eq!(names.len(), 3, "{names:?}");
        fs::write(&path, "[sandbx]").unwrap();
        assert_eq!(
            allow_host_in_project(&inner, &host)
                .unwrap_err()
                .to_string(),
            format!(
                "`{}` line 1, column 2: unknown field `sandbx`, expected one of `sandbox`, `agent`, `model`, `git`, `github`, `ci`, `reviews`, `overlap`, `issues`, `monitoring`, `notify`",
                path.display()
            )
        );
    }
}

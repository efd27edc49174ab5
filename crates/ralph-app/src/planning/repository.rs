//! Checks whether a run can start from a repository, and lists the differences between the user's work
//! tree and a sandbox.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use ralph_core::id::CommitId;
use ralph_core::submodule::Submodule;
use ralph_engine::git::{GitError, HostGit};

use crate::error::AppError;

/// The number of paths or names that a notice lists.
const MAX_NAMED: usize = 5;

/// Returns the error for a directory whose repository git cannot open.
pub(crate) fn unreadable(path: &Path, error: &GitError) -> AppError {
    let message = error.to_string();
    let has = |part: &str| message.contains(part);
    if has("dubious ownership") || has("unsafe repository") {
        let directory = message.split('\'').nth(1);
        let directory = directory.map_or_else(|| path.display().to_string(), str::to_owned);
        return unusable(
            path,
            "it belongs to another user, and git does not open such repositories unless you allow it",
            &format!("if you trust it: `git config --global --add safe.directory '{directory}'`"),
        );
    }
    if has("unknown repository extension") || has("repo version") {
        return unusable(
            path,
            &format!("this git does not know its format: {message}"),
            "upgrade git",
        );
    }
    if has("safe.bareRepository") {
        return unusable(
            path,
            "your git configuration does not open bare repositories (`safe.bareRepository`)",
            "name a repository with a work tree, or allow them with `git config --global safe.bareRepository all`",
        );
    }
    if has("not a git repository") {
        return no_repository(path, message);
    }
    unusable(
        path,
        &message,
        "run `git status` there and correct what git reports",
    )
}

/// Returns the error for a directory without a repository.
pub(crate) fn no_repository(path: &Path, why: impl Into<String>) -> AppError {
    AppError::usage(
        format!("there is no git repository at `{}`", path.display()),
        why,
        "name one with `--repo PATH`, or create one with `git init`",
    )
}

fn unusable(path: &Path, why: &str, fix: &str) -> AppError {
    let what = format!("repository `{}` cannot be used", path.display());
    AppError::runtime(what, why, fix)
}

/// Rejects a path that cannot be part of a URL or of the journal.
pub(crate) fn require_utf8_path(path: &Path) -> Result<(), AppError> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(unusable(
            path,
            "its path is not UTF-8",
            "move it to a path that is",
        )),
    }
}

/// Rejects a repository whose history cannot be copied completely.
pub(crate) async fn require_complete_history(
    path: &Path,
    branch: &str,
    git: &HostGit,
) -> Result<(), AppError> {
    refuse_shallow(path, git).await?;
    refuse_grafts(path, git).await?;
    refuse_missing_objects(path, branch, git).await
}

async fn refuse_shallow(path: &Path, git: &HostGit) -> Result<(), AppError> {
    let shallow = git
        .run_as_user(path, &["rev-parse", "--is-shallow-repository"])
        .await
        .map_err(|error| unreadable(path, &error))?;
    if shallow.trim() != "true" {
        return Ok(());
    }
    Err(unusable(
        path,
        "it is a shallow clone, so its history cannot be copied",
        "complete it with `git fetch --unshallow`",
    ))
}

/// Rejects grafts: they replace the parents of commits for the git that reads them, so a copy has
/// another history.
async fn refuse_grafts(path: &Path, git: &HostGit) -> Result<(), AppError> {
    let file = git
        .run_as_user(path, &["rev-parse", "--git-path", "info/grafts"])
        .await
        .map_err(|error| unreadable(path, &error))?;
    let text = match fs::read(path.join(file.trim_end_matches('\n'))) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(unusable(
                path,
                &format!("`info/grafts` cannot be read: {error}"),
                "make the file readable, or remove it",
            ));
        }
    };
    let is_graft = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    if !text.lines().any(is_graft) {
        return Ok(());
    }
    Err(unusable(
        path,
        "`info/grafts` changes its history, which a copy would not have",
        "convert the grafts with `git replace --convert-graft-file`, or remove the file",
    ))
}

/// Rejects missing objects: a partial clone fetches them from its remote on demand, and ralph
/// contacts no remote.
async fn refuse_missing_objects(path: &Path, branch: &str, git: &HostGit) -> Result<(), AppError> {
    let keys = r"^(remote\..*\.promisor|extensions\.partialclone)$";
    let is_partial = git
        .run_as_user(path, &["config", "--get-regexp", keys])
        .await;
    match is_partial {
        Ok(_) => {}
        // Git fails without a message if no key matches.
        Err(GitError::Failed { .. }) => return Ok(()),
        Err(error) => return Err(unreadable(path, &error)),
    }
    let reference = format!("refs/heads/{branch}");
    let listing = [
        "rev-list",
        "--objects",
        "--missing=print",
        "--quiet",
        &reference,
        "--",
    ];
    let missing = match git.run_as_user(path, &listing).await {
        Ok(text) => text.lines().filter(|line| line.starts_with('?')).count(),
        Err(error) => return Err(unreadable(path, &error)),
    };
    if missing == 0 {
        return Ok(());
    }
    let objects = crate::format::plural(missing as u64, "object", "objects");
    Err(unusable(
        path,
        &format!("it is a partial clone that lacks {objects} of `{branch}`"),
        "fetch them with `git fetch --refetch --no-filter`, or clone it without `--filter`",
    ))
}

/// Returns the differences between a checkout in a sandbox and the user's work tree.
pub(crate) async fn work_tree_notices(path: &Path, base: &CommitId, git: &HostGit) -> Vec<String> {
    let submodules = submodules(path, base, git).await;
    let submodules = (!submodules.is_empty()).then(|| {
        format!(
            "submodules are not checked out in the sandbox, their directories are empty there: {}",
            join_names(&submodules)
        )
    });
    let filters = filters(path, base, git).await;
    let (lfs, others): (Vec<String>, Vec<String>) =
        filters.into_iter().partition(|filter| filter == "lfs");
    let lfs = (!lfs.is_empty()).then(|| {
        "files in Git LFS are pointer files in the sandbox: their contents are not part of a commit"
            .to_owned()
    });
    let others = (!others.is_empty()).then(|| {
        format!(
            "git filters from `.gitattributes` are not applied in the sandbox, where files are as committed: {}",
            join_names(&others)
        )
    });
    [submodules, lfs, others].into_iter().flatten().collect()
}

fn join_names(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMED).map(|name| format!("`{name}`"));
    let shown: Vec<String> = shown.collect();
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

async fn submodules(path: &Path, base: &CommitId, git: &HostGit) -> Vec<String> {
    let args = ["ls-tree", "-r", "-z", "--full-tree", base.as_str()];
    let listed = match git.run_as_user(path, &args).await {
        Ok(listed) => listed,
        Err(error) => {
            tracing::warn!(%error, "cannot list the submodules of `{}`", path.display());
            return Vec::new();
        }
    };
    let entries = listed.split('\0').filter_map(|line| line.split_once('\t'));
    entries
        .filter(|(facts, _)| facts.starts_with("160000 "))
        .map(|(_, path)| path.to_owned())
        .collect()
}

/// Returns the submodules that the `.gitmodules` of a commit names; none if the file is missing or invalid.
pub(crate) async fn named_submodules(
    path: &Path,
    base: &CommitId,
    git: &HostGit,
) -> Vec<Submodule> {
    let blob = format!("--blob={base}:.gitmodules");
    let args = [
        "config",
        &blob,
        "-z",
        "--get-regexp",
        r"^submodule\..*\.url$",
    ];
    let listed = match git.run_as_user(path, &args).await {
        Ok(listed) => listed,
        Err(error) => {
            tracing::debug!(%error, "no submodules of `{}` are known", path.display());
            return Vec::new();
        }
    };
    let entries = listed
        .split('\0')
        .filter_map(|entry| entry.split_once('\n'));
    let submodule = |(key, url): (&str, &str)| {
        let name = key.strip_prefix("submodule.")?.strip_suffix(".url")?;
        Some(Submodule {
            name: name.to_owned(),
            url: url.to_owned(),
        })
    };
    entries.filter_map(submodule).collect()
}

/// Returns the filters that the attributes of a commit name.
async fn filters(path: &Path, base: &CommitId, git: &HostGit) -> BTreeSet<String> {
    let args = [
        "grep",
        "--no-color",
        "--text",
        "-h",
        "-e",
        "filter=",
        base.as_str(),
        "--",
        ":(top,glob)**/.gitattributes",
    ];
    match git.run_as_user(path, &args).await {
        Ok(lines) => filters_in(&lines),
        Err(error) => {
            // The command also fails if it finds nothing.
            tracing::debug!(%error, "no filters are known for `{}`", path.display());
            BTreeSet::new()
        }
    }
}

fn filters_in(attributes: &str) -> BTreeSet<String> {
    let lines = attributes.lines().map(str::trim);
    let words = lines
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace);
    words
        .filter_map(|word| word.strip_prefix("filter="))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_from_attributes() {
        let text = "*.bin filter=lfs diff=lfs merge=lfs -text\n# *.x filter=none\n*.key filter=git-crypt diff=git-crypt\n*.c -filter\n";
        let found: Vec<String> = filters_in(text).into_iter().collect();
        assert_eq!(found, ["git-crypt", "lfs"]);
    }

    #[test]
    fn the_hint_depends_on_the_message_of_git() {
        let path = Path::new("/r");
        let fix_of = |message: &str| {
            let command = "rev-parse".to_owned();
            let message = message.to_owned();
            unreadable(path, &GitError::Failed { command, message }).fix
        };
        for (message, fix) in [
            (
                "fatal: detected dubious ownership in repository at '/r/.git'",
                "if you trust it: `git config --global --add safe.directory '/r/.git'`",
            ),
            (
                "fatal: unsafe repository ('/r' is owned by someone else)",
                "if you trust it: `git config --global --add safe.directory '/r'`",
            ),
            (
                "fatal: cannot use bare repository '/r' (safe.bareRepository is 'explicit')",
                "name a repository with a work tree, or allow them with `git config --global safe.bareRepository all`",
            ),
            ("fatal: unknown repository extension found:", "upgrade git"),
            (
                "fatal: Expected git repo version <= 1, found 2",
                "upgrade git",
            ),
            (
                "fatal: not a git repository (or any of the parent directories): .git",
                "name one with `--repo PATH`, or create one with `git init`",
            ),
            (
                "fatal: bad config line 1 in file .git/config",
                "run `git status` there and correct what git reports",
            ),
        ] {
            assert_eq!(fix_of(message), fix, "{message}");
        }
    }
}

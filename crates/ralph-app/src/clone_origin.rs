//! The repository on a source host that a repository on this machine is a clone of.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ralph_core::repo_address::{RemoteRepo, RepoAddress};

/// The most bytes of a configuration file that are read.
const MAX_CONFIG_BYTES: u64 = 256 * 1024;

/// Returns the repository of the remote `origin`, if it is on a source host. Git's rules that rewrite
/// addresses are not applied.
pub(crate) fn clone_origin(top: &Path) -> Option<RemoteRepo> {
    let config = match read_config(top) {
        Ok(config) => config,
        Err(error) => {
            tracing::debug!(%error, "no origin is known for `{}`", top.display());
            return None;
        }
    };
    match RepoAddress::parse_remote_url(origin_url(&config)?) {
        Ok(RepoAddress::Remote(repo)) => Some(repo),
        Ok(RepoAddress::Path(_)) | Err(_) => None,
    }
}

fn read_config(top: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = fs::File::open(git_directory(top)?.join("config"))?;
    file.take(MAX_CONFIG_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the directory with the configuration. `.git` of a linked work tree is a file.
fn git_directory(top: &Path) -> io::Result<PathBuf> {
    let entry = top.join(".git");
    if entry.is_dir() {
        return Ok(entry);
    }
    let text = fs::read_to_string(&entry)?;
    let directory = text.trim().trim_start_matches("gitdir:").trim();
    let directory = top.join(directory);
    match fs::read_to_string(directory.join("commondir")) {
        Ok(common) => Ok(directory.join(common.trim())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(directory),
        Err(error) => Err(error),
    }
}

fn origin_url(config: &str) -> Option<&str> {
    let mut is_origin = false;
    let mut url = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_origin = line == r#"[remote "origin"]"#;
        } else if is_origin
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "url"
        {
            url = Some(value.trim());
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use ralph_test::{create_repository, git};

    use super::*;

    #[test]
    fn the_origin_of_a_clone_and_of_its_work_trees_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let (top, linked) = (directory.path().join("a"), directory.path().join("b"));
        fs::create_dir(&top).unwrap();
        create_repository(&top);
        assert_eq!(clone_origin(&top), None);
        git(&top, &["remote", "add", "other", "https://github.com/x/y"]);
        git(&top, &["remote", "add", "origin", "../elsewhere"]);
        assert_eq!(clone_origin(&top), None);
        let url = "https://me:secret@GitHub.com/o/r.git";
        git(&top, &["remote", "set-url", "origin", url]);
        git(&top, &["worktree", "add", "--quiet", "--detach", "../b"]);
        for top in [&top, &linked] {
            let origin = clone_origin(top).unwrap().to_string();
            assert_eq!(origin, "https://github.com/o/r");
        }
    }
}

//! The repositories that commands of a run may read from its source host: its own and its submodules.

use serde::{Deserialize, Serialize};

use crate::repo_address::{RemoteRepo, RepoAddress};

/// The most submodules that a run can read.
const MAX_SUBMODULES: usize = 32;

/// A submodule at the base commit of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submodule {
    pub name: String,
    /// As `.gitmodules` writes it; it can be relative to the run's repository.
    pub url: String,
}

impl Submodule {
    /// Returns its repository, if that is on the source host of the run's repository.
    pub fn repository(&self, parent: &RemoteRepo) -> Option<RemoteRepo> {
        if self.url.starts_with("./") || self.url.starts_with("../") {
            return relative(&self.url, parent);
        }
        match RepoAddress::parse_remote_url(&self.url) {
            Ok(RepoAddress::Remote(repo)) if repo.authority() == parent.authority() => Some(repo),
            Ok(RepoAddress::Remote(_) | RepoAddress::Path(_)) | Err(_) => None,
        }
    }

    /// Returns whether commands may read it with the credential of the run's repository. A commit can name
    /// any repository, so those of other owners are excluded.
    fn is_readable(&self, parent: &RemoteRepo) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
        let is_option = self.name.is_empty() || self.name.starts_with('-');
        let has_owner = |repo: RemoteRepo| repo.owner().eq_ignore_ascii_case(parent.owner());
        !is_option
            && self.name.bytes().all(is_plain)
            && self
                .url
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"'=\"\\".contains(&byte))
            && self.repository(parent).is_some_and(has_owner)
    }
}

/// Returns the submodules that commands of a run may read: those of the owner of its repository.
pub fn readable_submodules(listed: Vec<Submodule>, parent: &RemoteRepo) -> Vec<Submodule> {
    let readable = listed.into_iter().filter(|each| each.is_readable(parent));
    readable.take(MAX_SUBMODULES).collect()
}

/// Returns the configuration with which git in a sandbox reads these repositories at another address,
/// `base`, in the form of the variable `GIT_CONFIG_PARAMETERS`.
///
/// A rule applies to all addresses that start with its own, so the address of a repository ends with
/// `.git`, unless `.gitmodules` writes another one.
pub fn redirected_git(parent: &RemoteRepo, submodules: &[Submodule], base: &str) -> String {
    let mut rules = vec![rule(base, parent, &parent.git_url())];
    for submodule in submodules {
        let Some(repo) = submodule.repository(parent) else {
            continue;
        };
        let is_relative = submodule.url.starts_with('.');
        let written = (!is_relative).then_some(submodule.url.as_str());
        for url in [Some(repo.git_url().as_str()), written]
            .into_iter()
            .flatten()
        {
            let rule = rule(base, &repo, url);
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    rules.join(" ")
}

fn rule(base: &str, repo: &RemoteRepo, url: &str) -> String {
    let name = repo.full_name();
    format!("'url.{base}/{name}.git.insteadOf={url}'")
}

/// Resolves an address such as `../lib.git` like git does, from the address of the parent.
fn relative(url: &str, parent: &RemoteRepo) -> Option<RemoteRepo> {
    let full_name = parent.full_name();
    let mut parts: Vec<&str> = full_name.split('/').collect();
    let mut rest = url;
    loop {
        if let Some(after) = rest.strip_prefix("./") {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("../") {
            parts.pop()?;
            rest = after;
        } else {
            break;
        }
    }
    parts.extend(rest.split('/'));
    parent.renamed(&parts.join("/")).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent() -> RemoteRepo {
        match RepoAddress::parse("https://github.com/octo/app").unwrap() {
            RepoAddress::Remote(repo) => repo,
            RepoAddress::Path(path) => panic!("{path}"),
        }
    }

    fn submodule(name: &str, url: &str) -> Submodule {
        Submodule {
            name: name.to_owned(),
            url: url.to_owned(),
        }
    }

    #[test]
    fn submodules_of_the_same_owner_can_be_read() {
        for (url, expected) in [
            ("https://github.com/octo/lib", Some("octo/lib")),
            ("https://github.com/Octo/lib.git", Some("Octo/lib")),
            ("git@github.com:octo/lib.git", Some("octo/lib")),
            ("ssh://git@github.com/octo/lib", Some("octo/lib")),
            ("../lib.git", Some("octo/lib")),
            ("../../octo/lib", Some("octo/lib")),
            ("../../other/lib", None),
            ("../../../lib", None),
            ("./lib", None),
            ("https://github.com/other/lib", None),
            ("https://example.com/octo/lib", None),
            ("https://github.com:8443/octo/lib", None),
            ("https://github.com/octo/lib'x", None),
            ("http://github.com/octo/lib", None),
            ("/srv/octo/lib", None),
            ("", None),
        ] {
            let readable = readable_submodules(vec![submodule("libs/one", url)], &parent());
            let names = readable
                .iter()
                .filter_map(|each| each.repository(&parent()));
            let names: Vec<String> = names.map(|repo| repo.full_name()).collect();
            assert_eq!(names, Vec::from_iter(expected), "{url}");
        }
        for name in ["", "-x", "a b", "a'b", "a=b", "a\nb"] {
            let named = submodule(name, "../lib");
            assert_eq!(readable_submodules(vec![named], &parent()), [], "{name:?}");
        }
    }

    #[test]
    fn each_written_address_is_redirected() {
        let submodules = [
            submodule("one", "git@github.com:octo/one.git"),
            submodule("two", "../two"),
        ];
        let base = "http://x:token@127.0.0.1:4141/git";
        let expected = [
            "'url.http://x:token@127.0.0.1:4141/git/octo/app.git.insteadOf=https://github.com/octo/app.git'",
            "'url.http://x:token@127.0.0.1:4141/git/octo/one.git.insteadOf=https://github.com/octo/one.git'",
            "'url.http://x:token@127.0.0.1:4141/git/octo/one.git.insteadOf=git@github.com:octo/one.git'",
            "'url.http://x:token@127.0.0.1:4141/git/octo/two.git.insteadOf=https://github.com/octo/two.git'",
        ];
        assert_eq!(
            redirected_git(&parent(), &submodules, base),
            expected.join(" ")
        );
    }
}

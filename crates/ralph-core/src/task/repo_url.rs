//! The location of a task's repository: an address, `owner/name` or a path, and nothing that git could
//! interpret as a command.

use std::fmt;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::repo_address::{RepoAddress, RepoAddressError};

/// The longest accepted address, in bytes.
const MAX_BYTES: usize = 1024;

/// The location of a repository: an `https` or `ssh` address, `owner/name`, `file:///path` or a path. It
/// never contains a credential.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct RepoUrl(String);

/// Why a string is not a repository location. The messages never repeat it: it may contain a
/// secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RepoUrlError {
    /// Empty, or only a scheme.
    #[error("is empty")]
    Empty,
    /// Longer than the limit.
    #[error("has more than {MAX_BYTES} bytes")]
    TooLong,
    /// Git would interpret it as an option.
    #[error("starts with `-`")]
    Option,
    /// Contains a user name, password or token.
    #[error("contains a user name or password")]
    Credentials,
    /// `git://`, `http://`, `ext::`, `host:path` and so on.
    #[error("is neither an `https://` or `ssh` address, nor `owner/name`, nor a path")]
    Scheme,
    /// The host is not a name, or is a link-local address.
    #[error("has no valid host name")]
    Host,
    /// The path contains invalid characters.
    #[error("has invalid characters in its path")]
    Path,
}

impl RepoUrl {
    /// Checks the grammar. The error names the violated rule and never repeats the text.
    pub fn parse(text: &str) -> Result<Self, RepoUrlError> {
        if text.is_empty() {
            return Err(RepoUrlError::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(RepoUrlError::TooLong);
        }
        if text.starts_with('-') {
            return Err(RepoUrlError::Option);
        }
        if text.chars().any(char::is_control) {
            return Err(RepoUrlError::Path);
        }
        match text.split_once("://") {
            Some(("https", rest)) => check_https(rest)?,
            Some(("file", path)) => check_file(path)?,
            Some(("ssh", _)) => check_ssh(text)?,
            Some((_, rest)) if has_credentials(rest) => return Err(RepoUrlError::Credentials),
            Some(_) => return Err(RepoUrlError::Scheme),
            None if is_ssh_address(text) => check_ssh(text)?,
            None => check_path(text)?,
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the original text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path on this machine, unless it is the address of a repository on a source host.
    pub fn local_path(&self) -> Option<&str> {
        if self.0.starts_with("https://") {
            return None;
        }
        match RepoAddress::parse(&self.0) {
            Ok(RepoAddress::Remote(_)) => None,
            // A path that is not an address has been checked by `parse`.
            Ok(RepoAddress::Path(_)) | Err(_) => {
                Some(self.0.strip_prefix("file://").unwrap_or(&self.0))
            }
        }
    }
}

/// Returns whether a text without a scheme has the form `user@host:path`.
fn is_ssh_address(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    let user = first.split_once('@').map(|(user, _)| user);
    let is_address = user.is_some_and(|user| !user.contains(':')) && first.contains(':');
    is_address && !text.contains("::")
}

fn check_ssh(text: &str) -> Result<(), RepoUrlError> {
    match RepoAddress::parse(text) {
        Ok(RepoAddress::Remote(_)) => Ok(()),
        Ok(RepoAddress::Path(_)) => Err(RepoUrlError::Scheme),
        Err(error) => Err(match error {
            RepoAddressError::Empty => RepoUrlError::Empty,
            RepoAddressError::TooLong => RepoUrlError::TooLong,
            RepoAddressError::Option => RepoUrlError::Option,
            RepoAddressError::Credentials => RepoUrlError::Credentials,
            RepoAddressError::Scheme => RepoUrlError::Scheme,
            RepoAddressError::Host => RepoUrlError::Host,
            RepoAddressError::OwnerAndName | RepoAddressError::Characters => RepoUrlError::Path,
        }),
    }
}

fn has_credentials(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#', '\\']).next();
    authority.is_some_and(|authority| authority.contains('@'))
}

fn check_https(rest: &str) -> Result<(), RepoUrlError> {
    if has_credentials(rest) {
        return Err(RepoUrlError::Credentials);
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let link_local = host
        .parse::<Ipv4Addr>()
        .is_ok_and(|address| address.is_link_local());
    if !host.split('.').all(label) || port.parse::<u16>().is_err() || link_local {
        return Err(RepoUrlError::Host);
    }
    let path = path.trim_end_matches('/');
    let clean = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._~+-".contains(&b))
    };
    if path.is_empty() {
        return Err(RepoUrlError::Empty);
    }
    path.split('/')
        .all(clean)
        .then_some(())
        .ok_or(RepoUrlError::Path)
}

/// `file://` requires an absolute path; a host or an escape would mean another location.
fn check_file(path: &str) -> Result<(), RepoUrlError> {
    if !path.starts_with('/') || path.contains(['%', '?', '#']) {
        return Err(RepoUrlError::Path);
    }
    Ok(())
}

/// Git interprets `helper::address` as a program and `host:path` as an address.
fn check_path(path: &str) -> Result<(), RepoUrlError> {
    let first = path.split('/').next().unwrap_or_default();
    if path.contains("::") || first.contains(':') {
        return Err(if first.contains('@') {
            RepoUrlError::Credentials
        } else {
            RepoUrlError::Scheme
        });
    }
    Ok(())
}

impl fmt::Display for RepoUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RepoUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_or_a_path_is_accepted() {
        for (text, path) in [
            ("https://github.com/ORG/REPO.git", None),
            ("https://git.example.com:8443/a/b/c/", None),
            ("https://10.0.0.7/team/app", None),
            ("file:///srv/git/app.git", Some("/srv/git/app.git")),
            ("/srv/git/app.git", Some("/srv/git/app.git")),
            ("../other repo", Some("../other repo")),
            (".", Some(".")),
            ("app", Some("app")),
            ("./owner/name", Some("./owner/name")),
            ("owner/name", None),
            ("git@github.com:org/repo.git", None),
            ("ssh://git@github.com/org/repo", None),
        ] {
            let url = RepoUrl::parse(text).unwrap();
            assert_eq!((url.as_str(), url.local_path()), (text, path));
        }
    }

    #[test]
    fn other_texts_are_rejected_without_repeating_them() {
        use RepoUrlError as E;
        let long = "x".repeat(1025);
        for (text, error) in [
            ("", E::Empty),
            ("https://", E::Host),
            ("https://host", E::Empty),
            ("https://host/", E::Empty),
            (&long, E::TooLong),
            ("-oProxyCommand=x", E::Option),
            ("--upload-pack=x", E::Option),
            ("https://user:secret@host/x", E::Credentials),
            ("https://token@host/x", E::Credentials),
            ("ssh://user:secret@host/x", E::Credentials),
            ("http://user:secret@host/x", E::Credentials),
            ("me:secret@github.com:org/repo.git", E::Credentials),
            ("git@-oProxyCommand=x:o/r", E::Host),
            ("git@github.com:org", E::Path),
            ("ssh://-oProxyCommand=x/y", E::Host),
            ("ssh://git@169.254.169.254/o/r", E::Host),
            ("git://host/o/r", E::Scheme),
            ("http://host/x", E::Scheme),
            ("HTTPS://host/x", E::Scheme),
            ("ext::sh -c touch% /tmp/x", E::Scheme),
            ("a/ext::sh", E::Scheme),
            ("host:path", E::Scheme),
            ("https://169.254.169.254/x", E::Host),
            ("https://-x.com/y", E::Host),
            ("https://a..b/y", E::Host),
            ("https://host:99999/y", E::Host),
            ("https://[::1]/y", E::Host),
            ("https://host/a/../b", E::Path),
            ("https://host/a//b", E::Path),
            ("https://host/a?x=y", E::Path),
            ("https://host/a b", E::Path),
            ("https://host/--x", E::Path),
            ("file://host/x", E::Path),
            ("file:///a%2e", E::Path),
            ("a\nb", E::Path),
        ] {
            assert_eq!(RepoUrl::parse(text), Err(error), "{text:?}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}

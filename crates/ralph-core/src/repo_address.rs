//! The address of a repository as users and git write it: a GitHub address, or a path.

use std::fmt;
use std::net::Ipv4Addr;

/// The longest accepted address, in bytes.
const MAX_BYTES: usize = 1024;

/// The host of an address without one.
const DEFAULT_HOST: &str = "github.com";

/// The location of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepoAddress {
    /// A repository on a source host.
    Remote(RemoteRepo),
    /// A directory on this machine.
    Path(String),
}

/// A repository on a source host: host, owner and name, all in a form that is safe in a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRepo {
    host: String,
    /// The port of the host's HTTPS server, if it is not 443.
    port: Option<u16>,
    owner: String,
    name: String,
}

/// The reason why a text is not the address of a repository. The messages never repeat it: it may
/// contain a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RepoAddressError {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text exceeds the limit.
    #[error("it has more than {MAX_BYTES} bytes")]
    TooLong,
    /// Git would interpret the text as an option.
    #[error("it starts with `-`")]
    Option,
    /// The text contains a password, or a token as the user name.
    #[error("it contains a user name or password")]
    Credentials,
    /// The scheme is neither `https`, `ssh` nor `file`.
    #[error("it is neither an `https://` or `ssh` address, nor `owner/name`, nor a path")]
    Scheme,
    /// The host is not a name, or is a link-local address.
    #[error("it has no valid host name")]
    Host,
    /// The path of the address is not that of a repository.
    #[error("its path is not `owner/name`")]
    OwnerAndName,
    /// The text contains control characters.
    #[error("it contains control characters")]
    Characters,
}

impl RepoAddress {
    /// Parses an address that the user wrote: `https://host/owner/name`, `ssh://git@host/owner/name`,
    /// `git@host:owner/name`, `owner/name` on github.com, or a path. A path of two parts starts with
    /// `./`.
    pub fn parse(text: &str) -> Result<Self, RepoAddressError> {
        check_text(text)?;
        match text.split_once("://") {
            Some(("https", rest)) if user_of(rest).is_some() => Err(RepoAddressError::Credentials),
            Some(("https", rest)) => parse_https(rest).map(Self::Remote),
            Some(("ssh", rest)) => parse_ssh(rest).map(Self::Remote),
            Some(("file", path)) if path.starts_with('/') => Ok(Self::Path(path.to_owned())),
            Some((_, rest)) if user_of(rest).is_some() => Err(RepoAddressError::Credentials),
            Some(_) => Err(RepoAddressError::Scheme),
            None => parse_without_scheme(text),
        }
    }

    /// Parses the URL of a git remote. In contrast to [`Self::parse`], the user part of an `https`
    /// URL is accepted and dropped, and `owner/name` is a path.
    pub fn parse_remote_url(text: &str) -> Result<Self, RepoAddressError> {
        check_text(text)?;
        if let Some(("https", rest)) = text.split_once("://") {
            let user = user_of(rest).map_or(0, |user| user.len() + 1);
            return parse_https(&rest[user..]).map(Self::Remote);
        }
        match Self::parse(text)? {
            Self::Remote(_) if !text.contains(':') => Ok(Self::Path(text.to_owned())),
            address @ (Self::Remote(_) | Self::Path(_)) => Ok(address),
        }
    }
}

impl RemoteRepo {
    /// Returns the host name in lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the owner and the name as `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// Returns the owner: a user or an organisation.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the name without `.git`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the host is github.com.
    pub fn is_on_github_com(&self) -> bool {
        self.host == DEFAULT_HOST && self.port.is_none()
    }

    /// Returns the host, with its port if that is not 443.
    pub fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// Returns the address for git.
    pub fn git_url(&self) -> String {
        format!("{self}.git")
    }

    /// Returns the repository with this `owner/name` on the same host.
    pub fn renamed(&self, full_name: &str) -> Result<Self, RepoAddressError> {
        let (owner, name) = owner_and_name(full_name)?;
        Ok(Self {
            owner,
            name,
            ..self.clone()
        })
    }
}

impl fmt::Display for RemoteRepo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "https://{}/{}/{}",
            self.authority(),
            self.owner,
            self.name
        )
    }
}

fn check_text(text: &str) -> Result<(), RepoAddressError> {
    if text.is_empty() {
        return Err(RepoAddressError::Empty);
    }
    if text.len() > MAX_BYTES {
        return Err(RepoAddressError::TooLong);
    }
    if text.starts_with('-') {
        return Err(RepoAddressError::Option);
    }
    if text.chars().any(char::is_control) {
        return Err(RepoAddressError::Characters);
    }
    Ok(())
}

/// Returns the part before `@` in the authority of an address without its scheme.
fn user_of(rest: &str) -> Option<&str> {
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    authority.rsplit_once('@').map(|(user, _)| user)
}

fn parse_https(rest: &str) -> Result<RemoteRepo, RepoAddressError> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (
            host,
            Some(port.parse().map_err(|_| RepoAddressError::Host)?),
        ),
        None => (authority, None),
    };
    remote(host, port.filter(|port| *port != 443), path)
}

/// The port of an `ssh` address says nothing about the host's HTTPS server.
fn parse_ssh(rest: &str) -> Result<RemoteRepo, RepoAddressError> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host_without_user(authority)?;
    let (host, port) = host.split_once(':').unwrap_or((host, "22"));
    if port.parse::<u16>().is_err() {
        return Err(RepoAddressError::Host);
    }
    remote(host, None, path)
}

fn host_without_user(authority: &str) -> Result<&str, RepoAddressError> {
    match authority.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => Err(RepoAddressError::Credentials),
        Some((_, host)) => Ok(host),
        None => Ok(authority),
    }
}

fn parse_without_scheme(text: &str) -> Result<RepoAddress, RepoAddressError> {
    let first = text.split('/').next().unwrap_or_default();
    if text.contains("::") {
        return Err(RepoAddressError::Scheme);
    }
    if let Some((authority, path)) = text.split_once(':').filter(|_| first.contains(':')) {
        if !authority.contains('@') {
            return Err(RepoAddressError::Scheme);
        }
        let host = host_without_user(authority)?;
        return remote(host, None, path).map(RepoAddress::Remote);
    }
    let is_path = text.starts_with(['/', '.', '~']) || text.split('/').count() != 2;
    if is_path {
        return Ok(RepoAddress::Path(text.to_owned()));
    }
    remote(DEFAULT_HOST, None, text).map(RepoAddress::Remote)
}

fn remote(host: &str, port: Option<u16>, path: &str) -> Result<RemoteRepo, RepoAddressError> {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && !label.starts_with('-') && label.bytes().all(is_plain)
    };
    let is_link_local = host
        .parse::<Ipv4Addr>()
        .is_ok_and(|address| address.is_link_local());
    if !host.split('.').all(is_label) || is_link_local {
        return Err(RepoAddressError::Host);
    }
    let (owner, name) = owner_and_name(path)?;
    let host = host.to_ascii_lowercase();
    let host = match host.as_str() {
        // GitHub's SSH server for networks that block port 22.
        "ssh.github.com" | "www.github.com" => DEFAULT_HOST.to_owned(),
        _ => host,
    };
    Ok(RemoteRepo {
        host,
        port,
        owner,
        name,
    })
}

fn owner_and_name(path: &str) -> Result<(String, String), RepoAddressError> {
    let path = path.trim_matches('/');
    let (owner, name) = path.split_once('/').ok_or(RepoAddressError::OwnerAndName)?;
    let name = name.strip_suffix(".git").unwrap_or(name);
    let is_part = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !matches!(part, "" | "." | "..") && !part.starts_with('-') && part.bytes().all(is_plain)
    };
    if is_part(owner) && is_part(name) {
        Ok((owner.to_owned(), name.to_owned()))
    } else {
        Err(RepoAddressError::OwnerAndName)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(address: RepoAddress) -> String {
        match address {
            RepoAddress::Remote(repo) => repo.to_string(),
            RepoAddress::Path(path) => format!("path {path}"),
        }
    }

    #[test]
    fn an_address_has_many_forms() {
        let github = "https://github.com/o/r";
        for (text, expected) in [
            ("https://github.com/o/r", github),
            ("https://GitHub.com/o/r.git/", github),
            ("https://github.com:443/o/r", github),
            ("git@github.com:o/r.git", github),
            ("ssh://git@github.com/o/r", github),
            ("ssh://git@ssh.github.com:443/o/r.git", github),
            ("o/r", github),
            (
                "https://git.example.com:8443/a/b",
                "https://git.example.com:8443/a/b",
            ),
            ("me@git.example.com:a/b.c", "https://git.example.com/a/b.c"),
            ("file:///srv/app", "path /srv/app"),
            ("./o/r", "path ./o/r"),
            ("/srv/app", "path /srv/app"),
            ("~/app", "path ~/app"),
            ("app", "path app"),
            ("a/b/c", "path a/b/c"),
            (".", "path ."),
        ] {
            assert_eq!(
                described(RepoAddress::parse(text).unwrap()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn other_texts_are_rejected_without_repeating_them() {
        use RepoAddressError as E;
        let long = "x".repeat(1025);
        for (text, error) in [
            ("", E::Empty),
            (&long, E::TooLong),
            ("--upload-pack=x", E::Option),
            ("https://secret@github.com/o/r", E::Credentials),
            ("ssh://me:secret@host/o/r", E::Credentials),
            ("http://me:secret@host/o/r", E::Credentials),
            ("http://host/o/r", E::Scheme),
            ("ext::sh -c x", E::Scheme),
            ("host:o/r", E::Scheme),
            ("https://-x/o/r", E::Host),
            ("https://169.254.169.254/o/r", E::Host),
            ("git@169.254.169.254:o/r", E::Host),
            ("ssh://-oProxyCommand=x/o/r", E::Host),
            ("https://host:x/o/r", E::Host),
            ("https://[::1]/o/r", E::Host),
            ("https://github.com/o", E::OwnerAndName),
            ("https://github.com/o/r/pull/1", E::OwnerAndName),
            ("https://github.com/o/..", E::OwnerAndName),
            ("o/r?x", E::OwnerAndName),
            ("o/r\n", E::Characters),
        ] {
            assert_eq!(RepoAddress::parse(text), Err(error), "{text:?}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn the_url_of_a_remote_may_have_a_user() {
        for (text, expected) in [
            ("https://me:secret@github.com/o/r", "https://github.com/o/r"),
            ("https://token@ghe.example/o/r", "https://ghe.example/o/r"),
            ("git@github.com:o/r", "https://github.com/o/r"),
            ("../up", "path ../up"),
            ("o/r", "path o/r"),
        ] {
            let address = RepoAddress::parse_remote_url(text).unwrap();
            assert_eq!(described(address), expected);
        }
    }
}

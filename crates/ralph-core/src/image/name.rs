//! Validated image names.
//!
//! A name becomes part of a request to the Docker Engine, so it must not contain anything else.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest accepted name.
const MAX_BYTES: usize = 512;

/// The longest tag that a Docker Engine accepts.
const MAX_TAG_BYTES: usize = 128;

/// The name of an image: `[registry/]repository[:tag][@digest]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageName {
    text: String,
}

/// The text is not a valid image name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an image name: {rule}")]
pub struct InvalidImageName {
    text: String,
    rule: &'static str,
}

impl ImageName {
    /// Parses and validates a name.
    pub fn parse(text: &str) -> Result<Self, InvalidImageName> {
        match broken_rule(text) {
            None => Ok(Self {
                text: text.to_owned(),
            }),
            Some(rule) => Err(InvalidImageName {
                text: text.chars().take(MAX_BYTES).collect(),
                rule,
            }),
        }
    }

    /// Wraps a name assembled from validated parts.
    pub(super) fn from_checked(text: String) -> Self {
        Self { text }
    }

    /// Returns the whole name.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the name without tag and digest.
    pub fn repository(&self) -> &str {
        split_name(&self.text).repository
    }

    /// Returns the tag, if there is one.
    pub fn tag(&self) -> Option<&str> {
        split_name(&self.text).tag
    }

    /// Returns the digest, else the tag, else `latest`.
    pub fn version(&self) -> &str {
        let parts = split_name(&self.text);
        parts.digest.or(parts.tag).unwrap_or("latest")
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for ImageName {
    type Error = InvalidImageName;

    fn try_from(text: String) -> Result<Self, InvalidImageName> {
        Self::parse(&text)
    }
}

impl From<ImageName> for String {
    fn from(name: ImageName) -> Self {
        name.text
    }
}

/// The parts of a name, not validated.
struct ImageNameParts<'a> {
    repository: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

fn split_name(text: &str) -> ImageNameParts<'_> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    // The colon before a registry's port is followed by a path.
    let (repository, tag) = match rest.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        Some(_) | None => (rest, None),
    };
    ImageNameParts {
        repository,
        tag,
        digest,
    }
}

/// Returns the rule that a text violates, if any.
fn broken_rule(text: &str) -> Option<&'static str> {
    if text.len() > MAX_BYTES {
        return Some("it has more than 512 bytes");
    }
    let parts = split_name(text);
    if parts.tag.is_some_and(|tag| !is_tag(tag)) {
        return Some(
            "its tag must have at most 128 letters, digits, `_`, `.` and `-`, and start with a letter, digit or `_`",
        );
    }
    if parts.digest.is_some_and(|digest| !is_digest(digest)) {
        return Some(
            "its digest must have the form `algorithm:hex` with 32 to 256 lower-case hexadecimal digits, as in `sha256:…`",
        );
    }
    let mut components = parts.repository.split('/').peekable();
    let first = components.next().unwrap_or_default();
    let is_registry = components.peek().is_some()
        && (first.contains(['.', ':']) || first == "localhost")
        && is_registry(first);
    if !is_registry && !is_component(first) || !components.all(is_component) {
        return Some(
            "it must consist of lower-case letters, digits and single separators, as in `name:tag` or `registry/name:tag`",
        );
    }
    None
}

fn is_tag(tag: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    tag.len() <= MAX_TAG_BYTES
        && !tag.starts_with(['.', '-'])
        && !tag.is_empty()
        && tag.bytes().all(inner)
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty()
            && algorithm
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && (32..=256).contains(&hex.len())
            && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_registry(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "443"));
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    name.split('.').all(label) && port.parse::<u16>().is_ok()
}

/// Returns whether a path component consists of lower-case letters and digits with single
/// separators between them: `.`, `_`, `__`, or any number of `-`.
pub(super) fn is_component(part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators = part.split(is_word).filter(|gap| !gap.is_empty());
    part.starts_with(is_word) && part.ends_with(is_word) && separators.into_iter().all(is_separator)
}

/// Returns whether `gap` is a valid separator between two words of a name.
pub(super) fn is_separator(gap: &str) -> bool {
    matches!(gap, "." | "_" | "__") || gap.bytes().all(|b| b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_docker_accepts_are_valid() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let pinned = format!("ghcr.io/x/y:1@{digest}");
        for (text, repository, version) in [
            ("ralph", "ralph", "latest"),
            ("ralph:latest", "ralph", "latest"),
            ("a--b__c.d_e:V1", "a--b__c.d_e", "V1"),
            (
                "docker/sandbox-templates:claude-code",
                "docker/sandbox-templates",
                "claude-code",
            ),
            ("localhost/x", "localhost/x", "latest"),
            ("localhost:5000/x:1", "localhost:5000/x", "1"),
            (
                "Registry.Example.com:5000/team/x",
                "Registry.Example.com:5000/team/x",
                "latest",
            ),
            (&digest, "sha256", &digest["sha256:".len()..]),
            (&pinned, "ghcr.io/x/y", &digest),
        ] {
            let name = ImageName::parse(text).unwrap();
            assert_eq!(
                (name.repository(), name.version()),
                (repository, version),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_names_are_rejected() {
        for text in [
            "",
            ":",
            "Ralph",
            "my project",
            ".dotfiles",
            "a..b",
            "a._b",
            "a___b",
            "-a",
            "a-",
            "a/",
            "/a",
            "a//b",
            "../containers/x",
            "a:",
            "a:-x",
            "a:b:c",
            "a?b",
            "a#b",
            "a%2f",
            "a@",
            "a@sha256:xyz",
            "x.y:port/z",
            "-x.y/z",
            "é",
            "a\n",
            "a/b?fromImage=c",
        ] {
            assert!(ImageName::parse(text).is_err(), "{text:?}");
        }
        assert!(ImageName::parse(&format!("a:{}", "x".repeat(129))).is_err());
        assert!(ImageName::parse(&"a".repeat(513)).is_err());
        assert_eq!(
            ImageName::parse("My Project").unwrap_err().to_string(),
            "`My Project` is not an image name: it must consist of lower-case letters, digits \
             and single separators, as in `name:tag` or `registry/name:tag`"
        );
    }
}

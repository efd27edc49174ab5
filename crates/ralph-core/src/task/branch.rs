//! Branch names.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::printable::name_character;

/// The longest accepted branch name, in bytes.
pub const MAX_BRANCH_BYTES: usize = 200;

/// The longest slug derived from a title, in characters.
pub(super) const MAX_SLUG_CHARS: usize = 48;

/// A valid git branch name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct BranchName(String);

impl BranchName {
    /// Checks git's rules for ref names. The error names the violated rule.
    pub fn parse(text: &str) -> Result<Self, String> {
        check(text).map(|()| Self(text.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for BranchName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Checks a whole branch name. The error names the violated rule.
pub(super) fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("is empty".into());
    }
    if name.len() > MAX_BRANCH_BYTES {
        return Err(format!(
            "has {} bytes, at most {MAX_BRANCH_BYTES} are allowed",
            name.len()
        ));
    }
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    if let Some(bad) = name.chars().find(|c| forbidden(*c)) {
        let bad = name_character(bad);
        return Err(format!("contains {bad}, which git does not allow"));
    }
    for bad in ["..", "//", "@{"] {
        if name.contains(bad) {
            return Err(format!("contains `{bad}`, which git does not allow"));
        }
    }
    if name.starts_with(['-', '/']) || name.ends_with(['/', '.']) {
        return Err("starts with `-` or `/`, or ends with `/` or `.`".into());
    }
    if name == "@" || name == "HEAD" {
        return Err("is a reserved name".into());
    }
    for part in name.split('/') {
        if part.starts_with('.') || part.as_bytes().ends_with(b".lock") {
            return Err("has a part that starts with `.` or ends with `.lock`".into());
        }
    }
    Ok(())
}

/// Derives a part of a branch name from a title.
pub(super) fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() > MAX_SLUG_CHARS {
            break;
        }
    }
    let slug = match slug
        .get(..MAX_SLUG_CHARS)
        .filter(|_| slug.len() > MAX_SLUG_CHARS)
    {
        // A word that does not fit is left out, unless it is the only one.
        Some(start) if !slug.ends_with('-') => {
            start.rsplit_once('-').map_or(start, |(words, _)| words)
        }
        Some(start) => start,
        None => &slug,
    };
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "work" } else { slug }.to_owned()
}

/// Removes the id of the task from the start of a slug, because the branch contains it already.
pub(super) fn without_id(slug: &str, id: &str) -> String {
    match slug.strip_prefix(id) {
        Some("") => "work".to_owned(),
        Some(rest) => rest.strip_prefix('-').unwrap_or(slug).to_owned(),
        None => slug.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_name_is_one_that_git_accepts() {
        for good in ["main", "ralph/task-001/x", "v1.2", "a@b", "größe", "a-"] {
            assert_eq!(BranchName::parse(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(201);
        for bad in [
            "", "-x", "/x", "x/", "x.", "a..b", "a//b", "a b", "a~1", "a^", "a:b", "a?", "a*",
            "a[", "a\\b", "a@{1}", "@", "HEAD", ".a", "a/.b", "a.lock", "a.lock/b", "a\nb", "a\0",
            &long,
        ] {
            assert!(BranchName::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_slug_does_not_repeat_the_id() {
        for (slug, id, expected) in [
            ("fix-the-bug", "fix-the", "bug"),
            ("fix-the-bug", "fix-the-bug", "work"),
            ("fix-the-bug", "fix-t", "fix-the-bug"),
            ("fix-the-bug", "other", "fix-the-bug"),
        ] {
            assert_eq!(without_id(slug, id), expected);
        }
    }

    #[test]
    fn a_slug_comes_from_the_title() {
        for (title, expected) in [
            ("Implement Foo (task-001)", "implement-foo-task-001"),
            ("  --Fix   the/bug!  ", "fix-the-bug"),
            ("日本語", "work"),
            ("", "work"),
        ] {
            assert_eq!(slug(title), expected);
            assert_eq!(check(&format!("ralph/t/{}", slug(title))), Ok(()));
        }
        let long = slug(&"abc def ".repeat(20));
        assert_eq!(long, "abc-def-abc-def-abc-def-abc-def-abc-def-abc-def");
    }
}

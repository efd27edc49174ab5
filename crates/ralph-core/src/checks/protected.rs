//! Files protected by the task: the checks use their versions from the base commit.

use regex::Regex;

use crate::surface::ChangedPath;
use crate::verdict::{FindingKind, VerifyFinding};

/// The most files listed in a finding.
const MAX_NAMED_FILES: usize = 5;

/// Returns the changed paths that match one of the patterns.
///
/// `*` and `?` do not cross directories, `**` does. A pattern without `/` matches files of that
/// name anywhere; one that ends with `/` matches everything below that directory.
pub fn protected_changes(changed: &[ChangedPath], patterns: &[String]) -> Vec<ChangedPath> {
    let compiled: Result<Vec<Regex>, regex::Error> =
        patterns.iter().map(|text| compile_glob(text)).collect();
    let Ok(patterns) = compiled else {
        // A pattern that is too large for the matcher must not leave its files unprotected.
        return changed.to_vec();
    };
    let is_protected = |changed: &&ChangedPath| patterns.iter().any(|p| p.is_match(&changed.path));
    changed.iter().filter(is_protected).cloned().collect()
}

/// Returns the finding for protected files that the branch changed.
pub fn protected_finding(changed: &[ChangedPath]) -> Option<VerifyFinding> {
    if changed.is_empty() {
        return None;
    }
    let named: Vec<String> = changed
        .iter()
        .take(MAX_NAMED_FILES)
        .map(|changed| format!("`{}`", changed.path))
        .collect();
    let more = match changed.len().saturating_sub(MAX_NAMED_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!(
        "protected files were changed; the checks used their versions from the base commit: {}{more}",
        named.join(", ")
    );
    Some(VerifyFinding::new(FindingKind::Protected, text))
}

fn compile_glob(pattern: &str) -> Result<Regex, regex::Error> {
    let is_directory = pattern.ends_with('/');
    let text = pattern.trim_start_matches("./").trim_matches('/');
    let mut regex = String::from("^");
    if !text.contains('/') && !is_directory && !pattern.starts_with('/') {
        regex.push_str("(?:.*/)?");
    }
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '*' if chars.next_if_eq(&'*').is_some() => {
                // `a/**/b` also matches `a/b`.
                let is_whole = chars.next_if_eq(&'/').is_some();
                regex.push_str(if is_whole { "(?:.*/)?" } else { ".*" });
            }
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            c => regex.push_str(&regex::escape(&c.to_string())),
        }
    }
    regex.push_str(if is_directory { "/.*$" } else { "$" });
    Regex::new(&regex)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::PathChange;

    #[test]
    fn patterns_match_paths_names_and_directories() {
        for (pattern, path, is_match) in [
            ("conftest.py", "a/conftest.py", true),
            ("/conftest.py", "a/conftest.py", false),
            ("tests/", "tests/a/b.py", true),
            ("tests/", "src/tests/a.py", false),
            ("tests/**", "tests/a/b.py", true),
            ("tests/**/b.py", "tests/b.py", true),
            ("ci/*.sh", "ci/a.sh", true),
            ("ci/*.sh", "ci/x/a.sh", false),
            ("*.snap", "a/b.snap", true),
            ("a?.txt", "ab.txt", true),
            ("[a].txt", "a.txt", false),
        ] {
            let changed = [ChangedPath {
                path: path.to_owned(),
                change: PathChange::Modified,
            }];
            let found = protected_changes(&changed, &[pattern.to_owned()]);
            assert_eq!(!found.is_empty(), is_match, "{pattern} {path}");
        }
        assert_eq!(protected_finding(&[]), None);
    }

    #[test]
    fn a_pattern_that_cannot_be_matched_protects_every_file() {
        let changed = [ChangedPath {
            path: "src/lib.rs".to_owned(),
            change: PathChange::Modified,
        }];
        let too_large = "?".repeat(100_000);
        assert_eq!(protected_changes(&changed, &[too_large]), changed);
    }
}

//! Classifies the changed paths.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::id::Digest;

use super::rules::{
    CI, COMPILED, FOR_DEVELOPERS, LOCKFILES, NEEDS_APPROVAL, RUNNERS, TEST_CLASSES, TESTS,
    WORKFLOWS, matches_any, matches_pattern,
};

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathChange {
    /// The path is new.
    Added,
    /// The content or mode changed.
    Modified,
    /// The path was deleted.
    Deleted,
}

/// A path that differs between the base and the branch. A rename is a deletion and an addition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPath {
    /// Path in the repository, separated by `/`.
    pub path: String,
    pub change: PathChange,
}

/// A path that a reviewer should check, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SurfaceFinding {
    pub path: String,
    pub why: String,
}

/// The changed paths that a reviewer should check. A path may be in several lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surface {
    /// Files that affect the result of the checks.
    pub verification: Vec<SurfaceFinding>,
    /// Files that run on the machine of a developer with a checkout of the branch.
    pub executes_for_developers: Vec<SurfaceFinding>,
    /// Files that the host runs with the repository's token.
    pub workflows: Vec<SurfaceFinding>,
    pub deleted_tests: Vec<String>,
    /// Tests that prove less than before or were deleted; see
    /// [`examine_test_diff`](super::examine_test_diff).
    #[serde(default)]
    pub weakened_tests: Vec<SurfaceFinding>,
    /// Tests with replaced assertions.
    #[serde(default)]
    pub rewritten_tests: Vec<SurfaceFinding>,
    /// Digest of the diff of existing tests, which identifies their changes.
    #[serde(default)]
    pub tests_digest: Option<Digest>,
}

impl Surface {
    /// Returns the changed files that configure ralph and need the user's approval again.
    pub fn approvals(&self) -> Vec<&str> {
        let findings = self.executes_for_developers.iter();
        let findings = findings.filter(|finding| finding.why == NEEDS_APPROVAL);
        findings.map(|finding| finding.path.as_str()).collect()
    }

    /// Returns whether there are no findings.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Finds the changes that affect the verification or run elsewhere; `commands` are the checks.
pub fn inspect_changes(paths: &[ChangedPath], commands: &[String]) -> Surface {
    let mut surface = Surface::default();
    for ChangedPath { path, change } in paths {
        let is_deleted = *change == PathChange::Deleted;
        let finding = |why: String| SurfaceFinding {
            path: path.clone(),
            why: if is_deleted {
                format!("{why}, deleted")
            } else {
                why
            },
        };
        surface
            .verification
            .extend(verification_reason(path, commands).map(finding));
        if matches_any(WORKFLOWS, path) {
            let why = "run by the host with the repository's token".to_owned();
            surface.workflows.push(finding(why));
        }
        if is_deleted {
            if is_test(path) {
                surface.deleted_tests.push(path.clone());
            }
            continue;
        }
        let lower = path.to_lowercase();
        let rule = FOR_DEVELOPERS
            .iter()
            .find(|(pattern, _)| matches_pattern(pattern, &lower));
        let executes = rule.map(|(_, why)| finding((*why).to_owned()));
        surface.executes_for_developers.extend(executes);
    }
    surface
}

/// Returns the changed tests that exist in the base, too.
pub fn existing_tests(paths: &[ChangedPath]) -> Vec<&str> {
    paths
        .iter()
        .filter(|changed| changed.change != PathChange::Added && is_test(&changed.path))
        .map(|changed| changed.path.as_str())
        .collect()
}

/// The reason for a test.
pub(super) const TEST_FILE: &str = "test file";
/// The reason for a file that CI runs.
pub(super) const IN_CI: &str = "runs in CI";
/// The reason for a lock file.
pub(super) const PINS_DEPENDENCIES: &str = "pins dependencies";

/// Returns how a path affects the checks, if it does.
fn verification_reason(path: &str, commands: &[String]) -> Option<String> {
    if let Some(command) = commands.iter().find(|command| calls_path(command, path)) {
        return Some(format!("named in `{}`", shorten_command(command)));
    }
    let why = if is_test(path) {
        TEST_FILE
    } else if matches_any(COMPILED, path) {
        "compiled code that may run instead of the source"
    } else if matches_any(CI, path) {
        IN_CI
    } else if matches_any(LOCKFILES, path) {
        PINS_DEPENDENCIES
    } else if matches_any(RUNNERS, path) {
        "configures the checks"
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// Returns whether a path is that of a test, by convention.
pub fn is_test(path: &str) -> bool {
    matches_any(TESTS, path)
        || TEST_CLASSES
            .iter()
            .any(|pattern| matches_pattern(pattern, path))
}

/// Returns whether a command line calls a file by its path, by the end of its path after a `cd`, or
/// as a Python module.
fn calls_path(command: &str, path: &str) -> bool {
    let is_separator = |c: char| c.is_whitespace() || "\"'`;&|()<>=,{}$".contains(c);
    let words: Vec<&str> = command
        .split(is_separator)
        .map(|word| word.split("::").next().unwrap_or_default())
        .map(|word| word.trim_start_matches("./").trim_start_matches("../"))
        .collect();
    let is_path = |word: &&str| {
        let may_be_file = word.contains(['.', '/']) && !word.ends_with('/');
        *word == path
            || may_be_file
                && path
                    .strip_suffix(*word)
                    .is_some_and(|above| above.ends_with('/'))
    };
    let is_module = |pair: &[&str]| {
        let file = pair[1].replace('.', "/");
        pair[0] == "-m"
            && [format!("{file}.py"), format!("{file}/__main__.py")].contains(&path.to_owned())
    };
    words.iter().any(is_path) || words.windows(2).any(is_module)
}

/// Returns whether a path configures a test runner or determines the code that it loads.
pub(crate) fn configures_checks(path: &str) -> bool {
    matches_any(RUNNERS, path) || matches_any(LOCKFILES, path) || matches_any(COMPILED, path)
}

/// Shortens a command line for a list.
fn shorten_command(command: &str) -> String {
    const MAX_CHARS: usize = 60;
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests;

//! Orders findings about changed files by importance.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::touched::{IN_CI, PINS_DEPENDENCIES, Surface, TEST_FILE};

/// How much a changed file matters to a reviewer, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Importance {
    /// A test that proves less than before, or was deleted.
    WeakenedTest,
    /// The configuration of a test runner, or a script that a check runs.
    Checks,
    /// A test with replaced assertions.
    RewrittenTest,
    /// A file that CI runs, or the source host with the repository's token.
    Automation,
    /// A file that runs on the machine of a developer with a checkout of the branch.
    DeveloperMachine,
    /// Everything else: new and changed test files, pinned dependencies.
    Other,
}

impl Importance {
    /// All levels, most important first.
    pub const ALL: [Self; 6] = [
        Self::WeakenedTest,
        Self::Checks,
        Self::RewrittenTest,
        Self::Automation,
        Self::DeveloperMachine,
        Self::Other,
    ];
}

impl fmt::Display for Importance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WeakenedTest => "weakened or removed tests",
            Self::Checks => "files that configure or run the checks",
            Self::RewrittenTest => "tests with changed assertions",
            Self::Automation => "workflow and CI files",
            Self::DeveloperMachine => "files that run on a developer's machine",
            Self::Other => "other files that the checks use",
        })
    }
}

/// All findings about one changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedFinding {
    pub importance: Importance,
    pub path: String,
    /// A few words each.
    pub why: Vec<String>,
}

/// Returns one finding per file, ordered by importance, then by path.
pub fn rank_findings(surface: &Surface) -> Vec<RankedFinding> {
    let mut files: BTreeMap<&str, RankedFinding> = BTreeMap::new();
    let weakened = surface.weakened_tests.iter();
    let weakened = weakened.map(|finding| (Importance::WeakenedTest, finding));
    let rewritten = surface.rewritten_tests.iter();
    let rewritten = rewritten.map(|finding| (Importance::RewrittenTest, finding));
    let verification = surface.verification.iter().map(|finding| {
        let importance = match finding.why.as_str() {
            why if why.starts_with(IN_CI) => Importance::Automation,
            why if why.starts_with(TEST_FILE) || why.starts_with(PINS_DEPENDENCIES) => {
                Importance::Other
            }
            _ => Importance::Checks,
        };
        (importance, finding)
    });
    let workflows = surface.workflows.iter();
    let workflows = workflows.map(|finding| (Importance::Automation, finding));
    let developers = surface.executes_for_developers.iter();
    let developers = developers.map(|finding| (Importance::DeveloperMachine, finding));
    for (importance, finding) in weakened
        .chain(rewritten)
        .chain(verification)
        .chain(workflows)
        .chain(developers)
    {
        let entry = files.entry(&finding.path).or_insert_with(|| RankedFinding {
            importance,
            path: finding.path.clone(),
            why: Vec::new(),
        });
        entry.importance = entry.importance.min(importance);
        entry.why.push(finding.why.clone());
    }
    let mut ranked: Vec<RankedFinding> = files.into_values().collect();
    ranked.sort_by_key(|finding| finding.importance);
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{ChangedPath, PathChange, inspect_changes};

    #[test]
    fn the_most_important_files_come_first() {
        let changed = [
            "Cargo.lock",
            "tests/new_test.py",
            "tests/old_test.py",
            ".vscode/settings.json",
            ".gitlab-ci.yml",
            "pytest.ini",
            "check.sh",
        ]
        .map(|path| ChangedPath {
            path: path.to_owned(),
            change: PathChange::Modified,
        });
        let mut surface = inspect_changes(&changed, &["sh check.sh".to_owned()]);
        surface.weakened_tests.push(crate::surface::SurfaceFinding {
            path: "tests/old_test.py".to_owned(),
            why: "test weakened: 1 assertion removed".to_owned(),
        });
        let ranked: Vec<String> = rank_findings(&surface)
            .iter()
            .map(|finding| format!("{}: {}", finding.path, finding.why.join("; ")))
            .collect();
        assert_eq!(
            ranked,
            [
                "tests/old_test.py: test weakened: 1 assertion removed; test file",
                "check.sh: named in `sh check.sh`",
                "pytest.ini: configures the checks",
                ".gitlab-ci.yml: runs in CI",
                ".vscode/settings.json: read by an editor that opens the repository",
                "Cargo.lock: pins dependencies",
                "tests/new_test.py: test file",
            ]
        );
    }
}

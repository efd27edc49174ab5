//! Compares the repository of a clean room before and after a check.
//!
//! A check that checks out another commit, or that rewrites the files under test, proves nothing
//! about the delivered commit. File times also reveal files that were changed and restored.

use std::time::Duration;

use ralph_core::ports::Sandbox;
use ralph_core::verdict::{FindingKind, VerifyFinding};

use crate::error::RunError;
use crate::git::{GitError, RepoRefs, SandboxGit};

/// Longer than the resolution of a file system's times.
const CLOCK_TICK: Duration = Duration::from_millis(20);
/// How many paths a finding names.
const MAX_LISTED_PATHS: usize = 5;

/// The state of a repository at one moment.
pub(super) struct RepoFingerprint {
    stamp_time: jiff::Timestamp,
    refs: RepoRefs,
    index: Option<Vec<u8>>,
}

impl RepoFingerprint {
    /// Records the refs and the index of a sandbox's repository.
    pub(super) async fn capture(room: &dyn Sandbox) -> Result<Self, RunError> {
        let git = SandboxGit::new(room);
        let fingerprint = Self {
            stamp_time: git.create_stamp().await?,
            refs: git.refs().await?,
            index: git.index().await?,
        };
        // The clock of the file system must advance before the check writes anything.
        tokio::time::sleep(CLOCK_TICK).await;
        Ok(fingerprint)
    }

    /// Returns the commit that was checked out.
    pub(super) fn head(&self) -> &str {
        &self.refs.commit
    }

    /// Returns the differences between this state and the present one.
    pub(super) async fn compare(self, room: &dyn Sandbox) -> Result<RoomChanges, RunError> {
        let git = SandboxGit::new(room);
        let refs = match git.refs().await {
            Ok(refs) => refs,
            Err(RunError::Git(GitError::InSandbox { message, .. })) => {
                let moved = Some(format!("made the repository unusable ({message})"));
                return Ok(RoomChanges {
                    moved,
                    written: Vec::new(),
                });
            }
            Err(error) => return Err(error),
        };
        let moved = describe_moved_head(&self.refs, &refs);
        let mut written: Vec<String> = refs.others_changed_since(&self.refs);
        if let Some(index) = &self.index {
            match git.written_since(index, self.stamp_time).await {
                Ok(paths) => written.extend(paths),
                Err(RunError::Git(GitError::InSandbox { message, .. })) => written.push(message),
                Err(error) => return Err(error),
            }
        }
        Ok(RoomChanges { moved, written })
    }
}

fn describe_moved_head(before: &RepoRefs, after: &RepoRefs) -> Option<String> {
    let short = |commit: &str| commit.chars().take(12).collect::<String>();
    if before.commit != after.commit {
        let (from, to) = (short(&before.commit), short(&after.commit));
        return Some(format!("moved HEAD from {from} to {to}"));
    }
    (before.branch != after.branch).then(|| "checked out another branch".to_owned())
}

/// The traces of a check in the repository of its clean room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RoomChanges {
    /// The change of the checked-out commit, if any.
    moved: Option<String>,
    /// Written files of the commit, and written refs.
    written: Vec<String>,
}

impl RoomChanges {
    /// Returns why the result of the check does not count, if it does not.
    pub(super) fn objection(&self, command: &str) -> Option<String> {
        let moved = self.moved.as_ref()?;
        Some(format!(
            "`{command}` {moved}; a check must not change the commit that it checks"
        ))
    }

    /// Returns the files that the check wrote to, as a finding.
    pub(super) fn finding(&self, command: &str) -> Option<VerifyFinding> {
        if self.written.is_empty() {
            return None;
        }
        let named: Vec<String> = self
            .written
            .iter()
            .take(MAX_LISTED_PATHS)
            .map(|path| format!("`{path}`"))
            .collect();
        let more = match self.written.len().saturating_sub(MAX_LISTED_PATHS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(VerifyFinding {
            kind: FindingKind::RewrittenFiles,
            text: format!(
                "`{command}` wrote to files of the commit while it checked them: {}{more}",
                named.join(", ")
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(commit: &str, branch: &str) -> RepoRefs {
        RepoRefs {
            commit: commit.repeat(40),
            branch: branch.to_owned(),
            all: Vec::new(),
        }
    }

    #[test]
    fn another_commit_or_branch_is_an_objection() {
        let before = refs("a", "refs/heads/x");
        assert_eq!(describe_moved_head(&before, &before), None);
        assert_eq!(
            describe_moved_head(&before, &refs("b", "refs/heads/x")).as_deref(),
            Some("moved HEAD from aaaaaaaaaaaa to bbbbbbbbbbbb")
        );
        assert_eq!(
            describe_moved_head(&before, &refs("a", "")).as_deref(),
            Some("checked out another branch")
        );
    }

    #[test]
    fn a_finding_names_a_few_of_many_files() {
        let changes = RoomChanges {
            moved: None,
            written: (1..=7).map(|n| format!("{n}.rs")).collect(),
        };
        let finding = changes.finding("make").unwrap();
        assert!(finding.text.ends_with("`5.rs` and 2 more"), "{finding:?}");
        assert_eq!(changes.objection("make"), None);
    }
}

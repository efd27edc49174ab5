//! Recognises changes that a branch contains under other commits, after a squashed or rebased merge.

use std::collections::{BTreeMap, BTreeSet};

use ralph_core::id::{CommitId, Digest};

use super::user_repository::UserRepository;
use super::{GitError, program};

/// The number of commits of the branch that are searched, newest first, and the most commits of the
/// changes.
const MAX_COMMITS: usize = 500;
/// The number of commits of the branch whose changes are compared.
const MAX_COMPARED: usize = 100;
/// The size limit of the changes of one commit.
const MAX_DIFF_BYTES: u64 = 32 << 20;

/// The changed files of one commit.
struct ChangedFiles {
    commit: String,
    files: BTreeSet<Vec<u8>>,
}

impl UserRepository {
    /// Returns whether the changes of `head` since its merge base with `branch` are in the history of
    /// `branch` under other commits: all in one commit, or each in a commit of its own. Searches the
    /// last commits of the branch only.
    pub async fn contains_changes(
        &self,
        head: &CommitId,
        branch: &CommitId,
    ) -> Result<bool, GitError> {
        let args = ["merge-base", head.as_str(), branch.as_str()];
        let output = self.output(&args).await?;
        if !output.status.success() {
            // The histories have no common commit.
            return Ok(false);
        }
        let text = program::successful_stdout("merge-base", &output)?;
        let Some(fork) = CommitId::parse(text.trim()) else {
            return Ok(false);
        };
        let Some(whole) = self.fingerprint(fork.as_str(), head.as_str()).await? else {
            return Ok(false);
        };
        let candidates = self.changed_files(&fork, branch).await?;
        let own = self.changed_files(&fork, head).await?;
        let whole_files: BTreeSet<Vec<u8>> =
            own.iter().flat_map(|commit| commit.files.clone()).collect();
        let mut compared = 0;
        let mut found = Vec::new();
        for candidate in &candidates {
            // The whole may touch fewer files than its commits, because one can revert another.
            let may_be_whole = candidate.files.is_subset(&whole_files);
            let may_be_part = own.iter().any(|commit| commit.files == candidate.files);
            if !(may_be_whole || may_be_part) || compared == MAX_COMPARED {
                continue;
            }
            compared += 1;
            let parent = format!("{}^", candidate.commit);
            let fingerprint = self.fingerprint(&parent, &candidate.commit).await?;
            if fingerprint.as_ref() == Some(&whole) {
                return Ok(true);
            }
            found.extend(fingerprint);
        }
        self.are_all_found(&own, &found).await
    }

    /// Returns whether each commit has one of these fingerprints.
    async fn are_all_found(
        &self,
        commits: &[ChangedFiles],
        found: &[Digest],
    ) -> Result<bool, GitError> {
        if commits.len() > found.len() || commits.len() == MAX_COMMITS {
            return Ok(false);
        }
        for commit in commits {
            let parent = format!("{}^", commit.commit);
            let fingerprint = self.fingerprint(&parent, &commit.commit).await?;
            if fingerprint.is_none_or(|fingerprint| !found.contains(&fingerprint)) {
                return Ok(false);
            }
        }
        Ok(!commits.is_empty())
    }

    /// Returns the commits of `to` that are not in `from`, newest first, without merges and without
    /// commits that change nothing.
    async fn changed_files(
        &self,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<Vec<ChangedFiles>, GitError> {
        let most = format!("--max-count={MAX_COMMITS}");
        let range = format!("{from}..{to}");
        let args = [
            "log",
            "-z",
            "--no-merges",
            "--no-renames",
            "--no-show-signature",
            "--name-only",
            "--format=%x00%H",
            &most,
            &range,
            "--",
        ];
        let output = self.output(&args).await?;
        program::successful_stdout("log", &output)?;
        Ok(parse_changed_files(&output.stdout))
    }

    /// Returns a digest of the changes between two commits that does not depend on their position in
    /// the files; `None` without changes, or if there are too many.
    async fn fingerprint(&self, from: &str, to: &str) -> Result<Option<Digest>, GitError> {
        let args = [
            "diff-tree",
            "-r",
            "-p",
            "--unified=3",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            from,
            to,
            "--",
        ];
        let Some(output) = self.output_up_to(&args, MAX_DIFF_BYTES).await? else {
            return Ok(None);
        };
        program::successful_stdout("diff-tree", &output)?;
        let text = without_positions(&output.stdout);
        Ok((!text.is_empty()).then(|| Digest::compute(&text)))
    }
}

/// Parses `git log -z --name-only --format=%x00%H`: a commit follows an empty field.
fn parse_changed_files(output: &[u8]) -> Vec<ChangedFiles> {
    let mut commits: BTreeMap<usize, ChangedFiles> = BTreeMap::new();
    let mut is_commit = false;
    for field in output.split(|byte| *byte == 0) {
        let field = field.strip_prefix(b"\n").unwrap_or(field);
        if field.is_empty() {
            is_commit = true;
            continue;
        }
        let text = String::from_utf8_lossy(field);
        match (is_commit, CommitId::parse(text.trim())) {
            (true, Some(id)) => {
                let commit = ChangedFiles {
                    commit: id.to_string(),
                    files: BTreeSet::new(),
                };
                commits.insert(commits.len(), commit);
            }
            (_, _) => {
                if let Some(mut last) = commits.last_entry() {
                    last.get_mut().files.insert(field.to_owned());
                }
            }
        }
        is_commit = false;
    }
    let changed = commits.into_values();
    changed.filter(|commit| !commit.files.is_empty()).collect()
}

/// Removes the line numbers of hunks and the ids of contents from a diff. Binary changes consist of
/// their contents.
fn without_positions(diff: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(diff.len());
    let mut is_header = true;
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            is_header = true;
        }
        if line.starts_with(b"@@ ") {
            is_header = false;
            text.extend_from_slice(b"@@\n");
        } else if !(is_header && line.starts_with(b"index ")) {
            text.extend_from_slice(line);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ralph_test::{create_repository, git};

    use super::*;
    use crate::git::HostGit;

    struct ChangesFixture {
        directory: tempfile::TempDir,
    }

    impl ChangesFixture {
        /// Creates `main`, and `work` with two commits; `main` has one more commit since.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            create_repository(directory.path());
            let fixture = Self { directory };
            fixture.git(&["checkout", "--quiet", "-B", "main"]);
            let lines: String = (1..60)
                .flat_map(|number| ["line ".to_owned(), number.to_string(), "\n".to_owned()])
                .collect();
            fixture.commit("long.txt", lines.as_bytes());
            fixture.git(&["checkout", "--quiet", "-b", "work"]);
            fixture.commit("a.txt", b"a\n");
            fixture.commit(
                "long.txt",
                lines.replace("line 50\n", "LINE 50\n").as_bytes(),
            );
            fixture.commit("b.bin", &[0, 1, 2, 255]);
            fixture.git(&["checkout", "--quiet", "main"]);
            fixture.commit("long.txt", lines.replace("line 2\n", "a\nb\n").as_bytes());
            fixture
        }

        fn path(&self) -> &Path {
            self.directory.path()
        }

        fn git(&self, args: &[&str]) -> String {
            git(self.path(), args)
        }

        fn commit(&self, name: &str, bytes: &[u8]) {
            std::fs::write(self.path().join(name), bytes).unwrap();
            self.git(&["add", "--", name]);
            self.git(&["commit", "--quiet", "--message", name]);
        }

        async fn contains(&self) -> bool {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let git = HostGit::read_only(&path.to_string_lossy(), Some(self.path().to_owned()));
            let repository = UserRepository::new(git, self.path().to_owned());
            let head = repository.branch_head("work").await.unwrap().unwrap();
            let branch = repository.branch_head("main").await.unwrap().unwrap();
            repository.contains_changes(&head, &branch).await.unwrap()
        }
    }

    #[tokio::test]
    async fn a_squashed_merge_is_recognised() {
        let fixture = ChangesFixture::new();
        assert!(!fixture.contains().await);
        fixture.git(&["merge", "--quiet", "--squash", "work"]);
        fixture.git(&["commit", "--quiet", "--message", "squashed"]);
        fixture.commit("later.txt", b"later\n");
        assert!(fixture.contains().await);
    }

    #[tokio::test]
    async fn a_rebased_merge_is_recognised_only_with_all_commits() {
        let fixture = ChangesFixture::new();
        fixture.git(&["cherry-pick", "work~2"]);
        fixture.git(&["cherry-pick", "work~1"]);
        assert!(!fixture.contains().await);
        fixture.git(&["cherry-pick", "work"]);
        assert!(fixture.contains().await);
    }

    #[tokio::test]
    async fn similar_changes_are_not_the_same() {
        let fixture = ChangesFixture::new();
        // Another content of the binary file, and one change too many.
        fixture.git(&["merge", "--quiet", "--squash", "work"]);
        std::fs::write(fixture.path().join("b.bin"), [0, 1, 2, 254]).unwrap();
        fixture.git(&["add", "b.bin"]);
        fixture.git(&["commit", "--quiet", "--message", "almost"]);
        assert!(!fixture.contains().await);
        // The branch that changes nothing was not merged.
        fixture.git(&["branch", "--force", "work", "main~1"]);
        assert!(!fixture.contains().await);
    }
}

//! The user's own repository: merges a run's branch on the user's request, and removes one.
//!
//! A working tree changes only by a fast-forward, which git refuses if it would overwrite local
//! changes. A merge of diverged branches is computed without a working tree.

use std::path::{Path, PathBuf};
use std::process::Output;

use ralph_core::id::CommitId;

use super::program::{HostGit, successful_stdout};
use super::{GitError, bounded};

/// Exit code of `git merge-tree` for conflicts, and of other commands for "no".
const NEGATIVE: i32 = 1;
/// Exit code of git for options that it does not know.
const UNKNOWN_OPTION: i32 = 129;

/// The result of merging two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult {
    /// The merge commit, which no branch names yet.
    Merged(CommitId),
    /// The files with conflicts.
    Conflicts(Vec<String>),
}

/// A repository that belongs to the user.
#[derive(Debug, Clone)]
pub struct UserRepository {
    git: HostGit,
    path: PathBuf,
}

impl UserRepository {
    /// Uses the repository at `path`.
    pub fn new(git: HostGit, path: PathBuf) -> Self {
        Self { git, path }
    }

    /// Returns the URL of the remote `origin` with the user's rewriting rules, if the remote exists.
    pub async fn origin_url(&self) -> Result<Option<String>, GitError> {
        let args = ["ls-remote", "--get-url", "origin"];
        let url = self.git.run_as_user(&self.path, &args).await?;
        // Git prints the name of a remote that does not exist.
        let url = url.trim();
        Ok((url != "origin").then(|| url.to_owned()))
    }

    /// Returns the commit of a branch, if the branch exists.
    pub async fn branch_head(&self, branch: &str) -> Result<Option<CommitId>, GitError> {
        let revision = format!("refs/heads/{branch}^{{commit}}");
        let output = self
            .output(&["rev-parse", "--verify", "--quiet", &revision])
            .await?;
        if output.status.code() == Some(NEGATIVE) {
            return Ok(None);
        }
        let text = successful_stdout("rev-parse", &output)?;
        CommitId::parse(text.trim())
            .map(Some)
            .ok_or_else(|| unexpected("rev-parse", &text))
    }

    /// Returns whether a commit is part of another one's history.
    pub async fn is_ancestor(
        &self,
        ancestor: &CommitId,
        descendant: &CommitId,
    ) -> Result<bool, GitError> {
        let (ancestor, descendant) = (ancestor.as_str(), descendant.as_str());
        let output = self
            .output(&["merge-base", "--is-ancestor", ancestor, descendant])
            .await?;
        if output.status.code() == Some(NEGATIVE) {
            return Ok(false);
        }
        successful_stdout("merge-base", &output).map(|_| true)
    }

    /// Returns the working tree in which a branch is checked out, if there is one.
    pub async fn worktree_with(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        let args = ["worktree", "list", "--porcelain"];
        let listing = self.git.run_as_user(&self.path, &args).await?;
        let wanted = format!("branch refs/heads/{branch}");
        let mut worktree = None;
        for line in listing.lines() {
            if let Some(path) = line.strip_prefix("worktree ") {
                worktree = Some(PathBuf::from(path));
            } else if line == wanted {
                return Ok(worktree);
            }
        }
        Ok(None)
    }

    /// Merges a commit into another one without a working tree. The result is a commit with the
    /// user's name, if git knows it.
    pub async fn merge(
        &self,
        into: &CommitId,
        from: &CommitId,
        message: &str,
    ) -> Result<MergeResult, GitError> {
        let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages"];
        let commits = ["-z", into.as_str(), from.as_str()];
        let args: Vec<&str> = args.into_iter().chain(commits).collect();
        let output = self.output(&args).await?;
        if output.status.code() == Some(UNKNOWN_OPTION) {
            return Err(GitError::Failed {
                command: "merge-tree".into(),
                message: "merging without a working tree needs git 2.38 or newer".into(),
            });
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut fields = text.split('\0');
        let tree = fields.next().unwrap_or_default().trim().to_owned();
        if output.status.code() == Some(NEGATIVE) && CommitId::parse(&tree).is_some() {
            let files = fields.take_while(|file| !file.is_empty());
            return Ok(MergeResult::Conflicts(files.map(str::to_owned).collect()));
        }
        successful_stdout("merge-tree", &output)?;
        self.commit_merge(&tree, [into, from], message).await
    }

    async fn commit_merge(
        &self,
        tree: &str,
        parents: [&CommitId; 2],
        message: &str,
    ) -> Result<MergeResult, GitError> {
        let [first, second] = parents.map(CommitId::as_str);
        let mut command = self.git.command_as_user(&self.path);
        for (key, variable) in [("user.name", "NAME"), ("user.email", "EMAIL")] {
            let output = self.output(&["config", "--get", key]).await?;
            let value = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            // Without a configured user, the commit is ralph's.
            if output.status.success() && !value.is_empty() {
                command
                    .env(format!("GIT_AUTHOR_{variable}"), &value)
                    .env(format!("GIT_COMMITTER_{variable}"), &value);
            }
        }
        command.args(["commit-tree", tree, "-p", first, "-p", second]);
        let output = bounded::output(&mut command, "commit-tree", message.as_bytes()).await?;
        let text = successful_stdout("commit-tree", &output)?;
        CommitId::parse(text.trim())
            .map(MergeResult::Merged)
            .ok_or_else(|| unexpected("commit-tree", &text))
    }

    /// Moves a branch forward to a descendant of its commit, together with the working tree that
    /// has it checked out. Fails without any change if local changes would be overwritten, or if
    /// the branch has moved.
    pub async fn fast_forward(
        &self,
        branch: &str,
        (from, to): (&CommitId, &CommitId),
        worktree: Option<&Path>,
    ) -> Result<(), GitError> {
        if let Some(worktree) = worktree {
            let args = ["merge", "--ff-only", "--no-autostash", "--quiet"];
            let args: Vec<&str> = args.into_iter().chain([to.as_str()]).collect();
            self.git.run_as_user(worktree, &args).await?;
        } else {
            let reference = format!("refs/heads/{branch}");
            let args = ["update-ref", "-m", "ralph merge", &reference];
            let commits = [to.as_str(), from.as_str()];
            let args: Vec<&str> = args.into_iter().chain(commits).collect();
            self.git.run_as_user(&self.path, &args).await?;
        }
        match self.branch_head(branch).await? {
            Some(head) if head == *to => Ok(()),
            Some(_) | None => Err(GitError::Moved {
                branch: branch.to_owned(),
                foreign: None,
            }),
        }
    }

    /// Removes a branch, if it is still at this commit.
    pub async fn remove_branch(&self, branch: &str, at: &CommitId) -> Result<(), GitError> {
        let reference = format!("refs/heads/{branch}");
        let args = ["update-ref", "-d", &reference, at.as_str()];
        self.git.run_as_user(&self.path, &args).await.map(drop)
    }

    pub(super) async fn output(&self, args: &[&str]) -> Result<Output, GitError> {
        let name = args.first().copied().unwrap_or_default();
        bounded::output(self.git.command_as_user(&self.path).args(args), name, b"").await
    }

    /// Returns the output of git, or `None` if it exceeds `limit` bytes.
    pub(super) async fn output_up_to(
        &self,
        args: &[&str],
        limit: u64,
    ) -> Result<Option<Output>, GitError> {
        let name = args.first().copied().unwrap_or_default();
        let mut command = self.git.command_as_user(&self.path);
        bounded::output_up_to(command.args(args), name, limit).await
    }
}

fn unexpected(command: &str, output: &str) -> GitError {
    GitError::Unexpected {
        command: command.to_owned(),
        output: output.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use ralph_test::{create_repository, git};

    use super::*;

    struct UserRepositoryFixture {
        directory: tempfile::TempDir,
    }

    impl UserRepositoryFixture {
        /// Creates a repository with `main` checked out, and a branch `work` with one more commit.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            create_repository(directory.path());
            let fixture = Self { directory };
            fixture.git(&["checkout", "--quiet", "-B", "main"]);
            fixture.git(&["checkout", "--quiet", "-b", "work"]);
            fixture.commit("work.txt", "work\n");
            fixture.git(&["checkout", "--quiet", "main"]);
            fixture
        }

        fn git(&self, args: &[&str]) -> String {
            git(self.directory.path(), args)
        }

        fn commit(&self, name: &str, text: &str) {
            std::fs::write(self.directory.path().join(name), text).unwrap();
            self.git(&["add", "--", name]);
            self.git(&["commit", "--quiet", "--message", name]);
        }

        fn repository(&self) -> UserRepository {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let git = HostGit::read_only(
                &path.to_string_lossy(),
                Some(self.directory.path().to_owned()),
            );
            UserRepository::new(git, self.directory.path().to_owned())
        }

        async fn head(&self, branch: &str) -> CommitId {
            let head = self.repository().branch_head(branch).await;
            head.unwrap().unwrap()
        }
    }

    #[tokio::test]
    async fn a_branch_is_found_with_its_commit_and_its_working_tree() {
        let fixture = UserRepositoryFixture::new();
        let repository = fixture.repository();
        assert_eq!(repository.branch_head("none").await.unwrap(), None);
        let (main, work) = (fixture.head("main").await, fixture.head("work").await);
        assert!(repository.is_ancestor(&main, &work).await.unwrap());
        assert!(!repository.is_ancestor(&work, &main).await.unwrap());
        let worktree = repository.worktree_with("main").await.unwrap().unwrap();
        assert_eq!(
            worktree.canonicalize().unwrap(),
            fixture.directory.path().canonicalize().unwrap()
        );
        assert_eq!(repository.worktree_with("work").await.unwrap(), None);
    }

    #[tokio::test]
    async fn conflicts_name_their_files_and_change_nothing() {
        let fixture = UserRepositoryFixture::new();
        fixture.commit("work.txt", "other\n");
        let (main, work) = (fixture.head("main").await, fixture.head("work").await);
        let merged = fixture.repository().merge(&main, &work, "m\n").await;
        assert_eq!(
            merged.unwrap(),
            MergeResult::Conflicts(vec!["work.txt".into()])
        );
        assert_eq!(fixture.head("main").await, main);
        assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    }

    #[tokio::test]
    async fn a_branch_moves_only_from_the_expected_commit() {
        let fixture = UserRepositoryFixture::new();
        let repository = fixture.repository();
        let (main, work) = (fixture.head("main").await, fixture.head("work").await);
        let stale = repository.fast_forward("work", (&main, &main), None).await;
        assert!(stale.is_err());
        assert!(repository.remove_branch("work", &main).await.is_err());
        repository.remove_branch("work", &work).await.unwrap();
        assert_eq!(repository.branch_head("work").await.unwrap(), None);
    }
}

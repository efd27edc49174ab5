//! A run's own bare repository on the host; only ralph writes its configuration.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ralph_core::id::CommitId;
use ralph_core::surface::{ChangedPath, PathChange};
use tokio::process::Command;

use super::program::{HostGit, subcommand_name, successful_stdout};
use super::{GitError, RepositoryMirror, bounded, history};
use crate::durable::{self, StoreError};

/// The most packs in the repository: each one slows down every git command.
const MAX_PACKS: usize = 16;

fn parse_commit_id(command: &str, text: &str) -> Result<CommitId, GitError> {
    CommitId::parse(text.trim()).ok_or_else(|| GitError::Unexpected {
        command: command.to_owned(),
        output: text.trim().to_owned(),
    })
}

/// The source of the objects of a run's base commit.
#[derive(Debug, Clone, Copy)]
pub enum BaseOrigin<'a> {
    /// The repository borrows them.
    Mirror(&'a RepositoryMirror),
    /// The repository stores the objects of this pack.
    Pack(&'a [u8]),
}

/// A run's own bare repository.
#[derive(Debug, Clone)]
pub struct HostRepo {
    git: HostGit,
    path: PathBuf,
    /// The directory for new objects, if it is not the repository's own.
    object_dir: Option<PathBuf>,
}

/// The files of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotFiles<'a> {
    /// Only ralph writes this directory.
    pub dir: &'a Path,
    /// Relative to the directory.
    pub paths: &'a [String],
    /// A file that is not in the directory: its name and content.
    pub generated: (&'a str, &'a [u8]),
}

impl HostRepo {
    pub(super) fn new(git: HostGit, path: PathBuf) -> Self {
        Self {
            git,
            path,
            object_dir: None,
        }
    }

    pub(super) fn git(&self) -> &HostGit {
        &self.git
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn command(&self) -> Command {
        let mut command = self.git.command(&self.path);
        // Set explicitly, because git would search the parent directories if this repository is
        // damaged.
        command.env("GIT_DIR", &self.path);
        if let Some(objects) = &self.object_dir {
            command.env("GIT_OBJECT_DIRECTORY", objects).env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                self.path.join("objects"),
            );
        }
        command
    }

    /// Returns the same repository with a separate directory for new objects, so that they can be
    /// inspected before they are imported.
    pub(super) fn with_object_dir(&self, objects: PathBuf) -> Self {
        Self {
            object_dir: Some(objects),
            ..self.clone()
        }
    }

    pub(super) async fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, GitError> {
        self.run_with_input(args, b"").await
    }

    /// Syncs the repository, including its directories, so that it survives a power cut.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        durable::sync_filesystem(&self.path)
    }

    /// Creates the repository with the object format of a commit, if it does not exist.
    pub(super) async fn init(&self, base: &CommitId) -> Result<(), GitError> {
        durable::create_dir(&self.path)?;
        let format = format!("--object-format={}", base.object_format());
        let args = ["init", "--quiet", "--bare", "--template=", &format, "."];
        self.run(&args).await.map(drop)
    }

    /// Creates the repository and sets the run's branch to the base commit, whose objects it gets from
    /// `origin`. Idempotent. The result survives a power cut.
    pub async fn prepare(
        &self,
        origin: BaseOrigin<'_>,
        base: &CommitId,
        branch: &str,
    ) -> Result<(), GitError> {
        self.init(base).await?;
        match origin {
            BaseOrigin::Mirror(mirror) => mirror.lend_to(&self.path)?,
            BaseOrigin::Pack(pack) => self.recover_from_pack(pack).await?,
        }
        self.run(&["update-ref", "refs/start", base.as_str()])
            .await?;
        self.run(&["update-ref", &format!("refs/heads/{branch}"), base.as_str()])
            .await?;
        Ok(self.sync()?)
    }

    /// Returns the commit at the head of a branch.
    pub async fn head(&self, branch: &str) -> Result<CommitId, GitError> {
        let text = self
            .run(&[
                "rev-parse",
                "--verify",
                "--quiet",
                &format!("refs/heads/{branch}"),
            ])
            .await?;
        parse_commit_id("rev-parse", &text)
    }

    /// Writes a bundle of a branch to a file.
    pub async fn bundle(&self, branch: &str, file: &Path) -> Result<(), GitError> {
        let branch = format!("refs/heads/{branch}");
        let args: [&OsStr; 5] = [
            "bundle".as_ref(),
            "create".as_ref(),
            "--quiet".as_ref(),
            file.as_os_str(),
            branch.as_ref(),
        ];
        self.run(&args).await.map(drop)
    }

    /// Repacks the small packs if there are many: every import adds one, and every git command
    /// searches all of them. Borrowed objects are not copied (`-l`).
    pub(super) async fn repack_if_needed(&self) {
        let entries = std::fs::read_dir(self.path.join("objects/pack"));
        let packs = entries.map_or(0, |entries| {
            entries
                .flatten()
                .filter(|entry| entry.path().extension() == Some(OsStr::new("pack")))
                .count()
        });
        if packs >= MAX_PACKS {
            // Without the repack git is only slower; the next import reports other problems.
            let repacked = self
                .run(&["repack", "-d", "-l", "--quiet", "--geometric=2"])
                .await;
            if repacked.is_err() {
                // Git before 2.32 can only repack all of them.
                let repacked = self
                    .run(&["repack", "-a", "-d", "-l", "--keep-unreachable", "--quiet"])
                    .await;
                durable::warn_if_failed("repack the repository", repacked);
            }
        }
    }

    /// Returns the titles of the last commits in a range, newest first, at most `count`.
    pub async fn commit_titles(
        &self,
        from: &CommitId,
        to: &CommitId,
        count: usize,
    ) -> Result<Vec<String>, GitError> {
        let range = format!("{from}..{to}");
        let count = format!("--max-count={count}");
        let text = self
            .run(&["log", "--no-decorate", "--format=%H %s", &count, &range])
            .await?;
        let title = |line: &str| {
            let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
            Some(history::title(&CommitId::parse(id)?, subject))
        };
        Ok(text.lines().filter_map(title).collect())
    }

    /// Returns the files that differ between two commits.
    pub async fn changed_paths(
        &self,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<Vec<ChangedPath>, GitError> {
        let text = self
            .run(&[
                "diff-tree",
                "-r",
                "--no-renames",
                "--name-status",
                "-z",
                from.as_str(),
                to.as_str(),
            ])
            .await?;
        let mut parts = text.split('\0');
        let mut files = Vec::new();
        while let (Some(status), Some(path)) = (parts.next(), parts.next()) {
            let change = match status {
                "A" => PathChange::Added,
                "D" => PathChange::Deleted,
                _ => PathChange::Modified,
            };
            files.push(ChangedPath {
                path: path.to_owned(),
                change,
            });
        }
        Ok(files)
    }

    /// Returns the object of a ref at a remote, if the ref exists.
    pub async fn remote_ref(
        &self,
        remote: &str,
        reference: &str,
    ) -> Result<Option<CommitId>, GitError> {
        let text = self
            .run_with_remote(remote, &["ls-remote", "--quiet", remote, reference])
            .await?;
        // The pattern also matches refs that end with the name.
        let exact = |line: &str| {
            let (id, name) = line.split_once('\t')?;
            (name == reference).then(|| parse_commit_id("ls-remote", id))
        };
        text.lines().find_map(exact).transpose()
    }

    /// Pushes a commit to a ref of a remote, without force.
    pub async fn push(
        &self,
        remote: &str,
        commit: &CommitId,
        reference: &str,
    ) -> Result<(), GitError> {
        let refspec = format!("{commit}:{reference}");
        let push = ["push", "--quiet", "--no-verify", remote, &refspec];
        match self.run_with_remote(remote, &push).await {
            Err(GitError::Failed { message, .. }) => {
                let remote_head = self.remote_ref(remote, reference).await?;
                match remote_head {
                    Some(head) if head == *commit => Ok(()),
                    Some(head) if !self.has_commit(&head).await => Err(GitError::Moved {
                        branch: reference.trim_start_matches("refs/heads/").to_owned(),
                        foreign: self
                            .describe_foreign_commits(remote, reference, commit)
                            .await,
                    }),
                    _ => Err(GitError::Failed {
                        command: "push".into(),
                        message,
                    }),
                }
            }
            other => other.map(drop),
        }
    }

    /// Returns whether a commit is in the repository.
    pub(crate) async fn has_commit(&self, commit: &CommitId) -> bool {
        self.run(&["cat-file", "-e", &format!("{commit}^{{commit}}")])
            .await
            .is_ok()
    }

    /// Commits files of a host directory to a ref, on top of its current commit. The commit
    /// survives a power cut.
    pub async fn commit_snapshot(
        &self,
        files: &SnapshotFiles<'_>,
        reference: &str,
        message: &str,
    ) -> Result<CommitId, GitError> {
        let index = self.path.join("snapshot.index");
        durable::remove_leftover(&index);
        let with_tree = |args: &[&str]| {
            let mut command = self.git.command(files.dir);
            command
                .env("GIT_DIR", &self.path)
                .env("GIT_WORK_TREE", files.dir)
                .env("GIT_INDEX_FILE", &index)
                .args(args);
            command
        };
        let (name, content) = files.generated;
        let blob = self
            .run_with_input(&["hash-object", "-w", "--stdin"], content)
            .await?;
        let entry = format!("100644,{},{name}", blob.trim());
        let update = ["update-index", "--add", "--remove", "-z", "--stdin"];
        let list = files.paths.join("\0");
        for (args, input) in [
            (&update[..], list.as_bytes()),
            (&["update-index", "--add", "--cacheinfo", &entry], b""),
        ] {
            let added = bounded::output(&mut with_tree(args), "update-index", input).await?;
            successful_stdout("update-index", &added)?;
        }
        let tree = bounded::output(&mut with_tree(&["write-tree"]), "write-tree", b"").await?;
        let tree = successful_stdout("write-tree", &tree)?;
        let parent = match self
            .run(&["rev-parse", "--verify", "--quiet", reference])
            .await
        {
            Ok(parent) => Some(parent),
            // The reference does not exist yet.
            Err(GitError::Failed { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut args = vec!["commit-tree".to_owned(), tree.trim().to_owned()];
        if let Some(parent) = &parent {
            args.extend(["-p".to_owned(), parent.trim().to_owned()]);
        }
        let commit = parse_commit_id(
            "commit-tree",
            &self.run_with_input(&args, message.as_bytes()).await?,
        )?;
        self.run(&["update-ref", reference, commit.as_str()])
            .await?;
        durable::remove_leftover(&index);
        self.sync()?;
        Ok(commit)
    }

    /// Fetches a ref of a remote, if it exists there and not here.
    pub async fn fetch_if_missing(&self, remote: &str, reference: &str) -> Result<(), GitError> {
        let known = self
            .run(&["rev-parse", "--verify", "--quiet", reference])
            .await
            .is_ok();
        if known {
            return Ok(());
        }
        self.fetch_latest(remote, reference).await
    }

    /// Fetches a ref of a remote, if it exists there, and replaces the local one.
    pub async fn fetch_latest(&self, remote: &str, reference: &str) -> Result<(), GitError> {
        if self.remote_ref(remote, reference).await?.is_none() {
            return Ok(());
        }
        let refspec = format!("+{reference}:{reference}");
        let fetch = ["fetch", "--quiet", "--no-tags", remote, &refspec];
        self.run_with_remote(remote, &fetch).await.map(drop)
    }

    /// Runs a command with `input` on standard input.
    pub(super) async fn run_with_input<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        input: &[u8],
    ) -> Result<String, GitError> {
        let name = subcommand_name(args);
        let output = bounded::output(self.command().args(args), &name, input).await?;
        successful_stdout(&name, &output)
    }
}

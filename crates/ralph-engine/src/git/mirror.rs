//! The objects that all runs of one repository share: a bare repository in the state directory from
//! which the repository of each run borrows.
//!
//! Only ralph writes it, and only under its lock. Each run has a ref there, `refs/runs/<run>/base`, so
//! the objects of its base stay reachable; nothing is pruned while the mirror exists.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph_core::id::{CommitId, Digest, RunId};

use super::{GitError, HostGit, HostRepo, locks};
use crate::durable::{self, StoreError, warn_if_failed};
use crate::linked_worktrees::LinkedWorktrees;
use crate::run_lock::{is_same_file, try_flock};

/// Number of hex digits of the location's digest in the name of a mirror.
const NAME_DIGITS: usize = 16;
/// How often the lock is tried: as long as git may take to fetch a large repository.
const LOCK_ATTEMPTS: usize = 36_000;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The extension of a damaged mirror that was replaced; more of them have a number of one digit.
const DAMAGED: &str = "damaged";
const MAX_DAMAGED: usize = 9;
/// The refs of the runs that borrow from a mirror.
const RUN_REFS: &str = "refs/runs/";

/// The shared objects of one repository's runs.
#[derive(Debug, Clone)]
pub struct RepositoryMirror {
    repo: HostRepo,
}

/// The right to write to a mirror; released on drop.
#[derive(Debug)]
struct MirrorLock {
    _file: File,
}

/// Whether a mirror was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MirrorRemoval {
    /// No run borrowed from it any more.
    Removed,
    /// A run borrows from it, or a process is writing to it.
    Kept,
}

impl RepositoryMirror {
    /// Returns the mirror of the repository at `location`, with the object format of a commit. All work
    /// trees of a repository have the same one.
    pub fn new(git: &HostGit, mirrors: &Path, location: &str, base: &CommitId) -> Self {
        let worktrees = LinkedWorktrees::find(Path::new(location));
        let digest = Digest::compute(worktrees.main().as_os_str().as_encoded_bytes());
        let format = match base.object_format() {
            "sha1" => String::new(),
            other => format!("-{other}"),
        };
        let name = format!("{}{format}.git", &digest.as_str()[..NAME_DIGITS]);
        Self::at(git, mirrors.join(name))
    }

    fn at(git: &HostGit, path: PathBuf) -> Self {
        Self {
            repo: git.repo(path),
        }
    }

    /// Returns all mirrors of a directory, sorted by name.
    pub fn list(git: &HostGit, mirrors: &Path) -> Result<Vec<Self>, StoreError> {
        let mut paths = list_directory(mirrors)?;
        paths.retain(|path| has_extension(path, "git") || is_leftover(path));
        // A crash can leave only the others.
        for path in &mut paths {
            path.set_extension("git");
        }
        paths.sort();
        paths.dedup();
        Ok(paths.into_iter().map(|path| Self::at(git, path)).collect())
    }

    /// Returns the directory of the mirror.
    pub fn path(&self) -> &Path {
        self.repo.path()
    }

    /// Adds the base commit of a run, fetched from `source` unless the mirror has it. A damaged mirror
    /// is built anew. The result survives a power cut.
    pub(crate) async fn add_base(
        &self,
        source: &str,
        run: &RunId,
        base: &CommitId,
    ) -> Result<(), GitError> {
        self.add(source, &run_ref(run), base).await
    }

    /// Sets a branch to a commit of `source`, which is fetched unless the mirror has it.
    pub async fn add_branch(
        &self,
        source: &str,
        branch: &str,
        commit: &CommitId,
    ) -> Result<(), GitError> {
        let reference = format!("refs/heads/{branch}");
        self.add(source, &reference, commit).await
    }

    async fn add(&self, source: &str, reference: &str, commit: &CommitId) -> Result<(), GitError> {
        self.path().parent().map_or(Ok(()), durable::create_dir)?;
        let _lock = self.lock().await?;
        self.finish_interrupted_rebuild()?;
        locks::remove_stale_locks(self.path()).await?;
        self.remove_partial_packs()?;
        match fetch_commit(&self.repo, source, reference, commit).await {
            // The network is the likely cause, and a rebuild would fetch the whole repository.
            Err(error @ GitError::Failed { .. })
                if source.starts_with("https://") && self.is_intact().await =>
            {
                return Err(error);
            }
            Err(GitError::Failed { command, message }) => {
                tracing::warn!("rebuilding a mirror, because git {command} failed: {message}");
                self.rebuild(source, reference, commit).await?;
            }
            fetched => fetched?,
        }
        self.repo.repack_if_needed().await;
        Ok(self.repo.sync()?)
    }

    /// Returns whether git can read all commits and trees of the mirror.
    async fn is_intact(&self) -> bool {
        let check = [
            "fsck",
            "--connectivity-only",
            "--no-dangling",
            "--no-progress",
        ];
        self.repo.run(&check).await.is_ok()
    }

    /// Builds the mirror anew in another directory and swaps the two. Base commits of other runs are
    /// copied from the user's repository, or else from the damaged mirrors, which are kept if one of them
    /// is nowhere else.
    async fn rebuild(
        &self,
        source: &str,
        reference: &str,
        commit: &CommitId,
    ) -> Result<(), GitError> {
        let (fresh_path, damaged) = (self.sibling("new"), self.unused_damaged_path()?);
        durable::remove_tree(&fresh_path)?;
        let fresh = Self::at(self.repo.git(), fresh_path.clone());
        if let Err(error) = fetch_commit(&fresh.repo, source, reference, commit).await {
            durable::remove_tree(&fresh_path)?;
            return Err(error);
        }
        let is_rescued = self.copy_other_bases(&fresh.repo, source, reference).await;
        fresh.repo.sync()?;
        durable::rename(self.path(), &damaged)?;
        durable::rename(&fresh_path, self.path())?;
        if is_rescued {
            for damaged in self.damaged_mirrors()? {
                durable::remove_tree(&damaged)?;
            }
        }
        Ok(())
    }

    /// Copies the base commits of the other runs in this mirror and in damaged ones; false if one of them
    /// is lost or unknown.
    async fn copy_other_bases(&self, to: &HostRepo, source: &str, reference: &str) -> bool {
        let mut origins = vec![self.path().to_owned()];
        let mut is_rescued = true;
        match self.damaged_mirrors() {
            Ok(damaged) => origins.extend(damaged),
            Err(error) => {
                tracing::warn!("cannot list damaged mirrors: {error}");
                is_rescued = false;
            }
        }
        for origin in &origins {
            let damaged = Self::at(self.repo.git(), origin.clone());
            is_rescued &= damaged.copy_bases(to, (source, &origins), reference).await;
        }
        is_rescued
    }

    /// Copies the base commits of the other runs in this mirror, from the first location that has them.
    async fn copy_bases(
        &self,
        to: &HostRepo,
        (source, origins): (&str, &[PathBuf]),
        reference: &str,
    ) -> bool {
        let bases = match self.bases().await {
            Ok(bases) => bases,
            Err(error) => {
                tracing::warn!("cannot list the base commits of a damaged mirror: {error}");
                return false;
            }
        };
        let origins = origins
            .iter()
            .map(|path| path.to_string_lossy().into_owned());
        let sources: Vec<String> = std::iter::once(source.to_owned()).chain(origins).collect();
        let mut is_rescued = true;
        let bases = bases.into_iter().map(|(run, base)| (run_ref(&run), base));
        for (other, base) in bases.filter(|(other, _)| other != reference) {
            let mut is_copied = false;
            for source in &sources {
                let copied = fetch_commit(to, source, &other, &base).await;
                is_copied = copied.is_ok();
                warn_if_failed("copy a base commit of a damaged mirror", copied);
                if is_copied {
                    break;
                }
            }
            is_rescued &= is_copied;
        }
        is_rescued
    }

    /// Returns the runs with a ref in the mirror, with their base commits.
    async fn bases(&self) -> Result<Vec<(RunId, CommitId)>, GitError> {
        let args = [
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            RUN_REFS,
        ];
        let text = self.repo.run(&args).await?;
        let parse = |line: &str| {
            let (id, name) = line.split_once(' ')?;
            let run = name.strip_prefix(RUN_REFS)?.strip_suffix("/base")?;
            Some((RunId::parse(run)?, CommitId::parse(id)?))
        };
        Ok(text.lines().filter_map(parse).collect())
    }

    /// Returns the runs below a directory that borrow from the mirror.
    pub async fn users(&self, runs: &Path) -> Result<Vec<RunId>, GitError> {
        let referenced = self.bases().await.unwrap_or_else(|error| {
            tracing::warn!("cannot list the runs of a mirror: {error}");
            Vec::new()
        });
        let mut users = Vec::new();
        for run in list_directory(runs)? {
            let name = run.file_name().unwrap_or_default().to_string_lossy();
            let Some(id) = RunId::parse(&name) else {
                continue;
            };
            if referenced.iter().any(|(other, _)| *other == id) || self.lends_to(&run)? {
                users.push(id);
            }
        }
        users.sort();
        Ok(users)
    }

    /// Returns whether a repository in the directory of a run borrows from the mirror.
    fn lends_to(&self, run: &Path) -> Result<bool, StoreError> {
        let mut repositories = list_directory(&run.join("recovered"))?;
        repositories.push(run.join("repo.git"));
        let name = self.path().file_name().unwrap_or_default();
        let suffix = Path::new(name).join("objects");
        for repository in repositories {
            let text = durable::read_if_present(&alternates_file(&repository))?;
            let text = text.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            if text.lines().any(|line| Path::new(line).ends_with(&suffix)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the refs of runs that no longer exist, and the mirror if no run is left.
    pub async fn remove_if_unused(&self, runs: &Path) -> Result<MirrorRemoval, GitError> {
        let Some(_lock) = self.try_lock()? else {
            return Ok(MirrorRemoval::Kept);
        };
        let users = self.users(runs).await?;
        if users.is_empty() {
            self.remove()?;
            return Ok(MirrorRemoval::Removed);
        }
        for (run, _) in self.bases().await? {
            if !users.contains(&run) {
                self.repo.run(&["update-ref", "-d", &run_ref(&run)]).await?;
            }
        }
        Ok(MirrorRemoval::Kept)
    }

    /// Removes the mirror. It gets another name first, because a part of it would look damaged.
    fn remove(&self) -> Result<(), StoreError> {
        let removed = self.sibling("removed");
        for leftover in self.leftovers()?.iter().chain([&removed]) {
            durable::remove_tree(leftover)?;
        }
        if self.path().exists() {
            durable::rename(self.path(), &removed)?;
        }
        durable::remove_tree(&removed)?;
        // Another process that waits for this file notices that it is gone.
        durable::remove_leftover(&self.sibling("lock"));
        Ok(())
    }

    /// Lets a repository of the state directory use the objects of the mirror, by a relative path, so
    /// that the state directory can be moved.
    pub(super) fn lend_to(&self, repository: &Path) -> Result<(), StoreError> {
        let mirrors = self.path().parent().unwrap_or(Path::new(""));
        let state = mirrors.parent().unwrap_or(Path::new(""));
        let below = |path: &Path| path.strip_prefix(state).map(Path::to_path_buf);
        let objects = self.path().join("objects");
        let target = match (below(repository), below(&objects)) {
            (Ok(repository), Ok(objects)) => {
                let up = "../".repeat(repository.components().count() + 1);
                Path::new(&up).join(objects)
            }
            _ => objects,
        };
        let file = alternates_file(repository);
        file.parent().map_or(Ok(()), durable::create_dir)?;
        durable::write(&file, format!("{}\n", target.display()).as_bytes())
    }

    /// Corrects the path to the mirror in a repository that was moved to another directory.
    pub(crate) fn restore_lending(&self, repository: &Path) -> Result<(), StoreError> {
        if alternates_file(repository).exists() {
            self.lend_to(repository)?;
        }
        Ok(())
    }

    /// Removes packs that a killed fetch left incomplete.
    fn remove_partial_packs(&self) -> Result<(), StoreError> {
        for path in list_directory(&self.path().join("objects/pack"))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("tmp_") {
                durable::remove_leftover(&path);
            }
        }
        Ok(())
    }

    /// Completes a rebuild that was interrupted between its two renames: the new mirror is complete then,
    /// and the damaged one has another name.
    fn finish_interrupted_rebuild(&self) -> Result<(), StoreError> {
        if self.path().exists() {
            return Ok(());
        }
        let fresh = self.sibling("new");
        let damaged = self.damaged_mirrors()?;
        let Some(newest) = damaged.last() else {
            return Ok(());
        };
        let replacement = if fresh.exists() { &fresh } else { newest };
        tracing::warn!("`{}` replaces a missing mirror", replacement.display());
        durable::rename(replacement, self.path())
    }

    /// Returns the damaged mirrors that were replaced, oldest first.
    fn damaged_mirrors(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut found = self.leftovers()?;
        found.retain(|path| !has_extension(path, "new"));
        Ok(found)
    }

    /// Returns the unfinished and the damaged mirrors beside this one.
    pub fn leftovers(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut found = list_directory(self.path().parent().unwrap_or(Path::new("")))?;
        found.retain(|path| is_leftover(path) && path.file_stem() == self.path().file_stem());
        found.sort();
        Ok(found)
    }

    /// Returns a path for a damaged mirror that no other one has, because it may still be needed.
    fn unused_damaged_path(&self) -> Result<PathBuf, StoreError> {
        let later = (2..=MAX_DAMAGED).map(|number| format!("{DAMAGED}-{number}"));
        let mut names = std::iter::once(DAMAGED.to_owned()).chain(later);
        let unused = names.find_map(|name| {
            let path = self.sibling(&name);
            (!path.exists()).then_some(path)
        });
        unused.ok_or_else(|| StoreError {
            doing: "rebuild",
            path: self.path().to_owned(),
            source: io::Error::other(format!(
                "{MAX_DAMAGED} damaged copies beside it contain the last copies of base commits"
            )),
        })
    }

    fn sibling(&self, extension: &str) -> PathBuf {
        self.path().with_extension(extension)
    }

    /// Waits until no other process writes to the mirror.
    async fn lock(&self) -> Result<MirrorLock, StoreError> {
        for _ in 0..LOCK_ATTEMPTS {
            if let Some(lock) = self.try_lock()? {
                return Ok(lock);
            }
            tokio::time::sleep(LOCK_RETRY_DELAY).await;
        }
        Err(StoreError {
            doing: "lock",
            path: self.sibling("lock"),
            source: io::Error::new(
                io::ErrorKind::TimedOut,
                "another process has been fetching this repository for half an hour",
            ),
        })
    }

    fn try_lock(&self) -> Result<Option<MirrorLock>, StoreError> {
        let path = self.sibling("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::when("open", &path))?;
        let is_locked = try_flock(&file) && is_same_file(&file, &path);
        Ok(is_locked.then_some(MirrorLock { _file: file }))
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// Returns whether a path is an unfinished or a damaged mirror.
fn is_leftover(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    extension == "new" || extension.starts_with(DAMAGED)
}

/// Fetches a commit and nothing newer, unless the repository has it, and sets a ref to it.
async fn fetch_commit(
    repo: &HostRepo,
    source: &str,
    reference: &str,
    commit: &CommitId,
) -> Result<(), GitError> {
    repo.init(commit).await?;
    if !repo.has_files_of(commit).await? {
        let refspec = format!("+{commit}:{reference}");
        let fetch = ["fetch", "--quiet", "--no-tags", source, &refspec];
        repo.run_with_remote(source, &fetch).await?;
        if !repo.has_files_of(commit).await? {
            return Err(GitError::Failed {
                command: "fetch".into(),
                message: format!("commit {} is incomplete afterwards", commit.short()),
            });
        }
    }
    repo.run(&["update-ref", reference, commit.as_str()])
        .await
        .map(drop)
}

fn run_ref(run: &RunId) -> String {
    format!("{RUN_REFS}{run}/base")
}

fn alternates_file(repository: &Path) -> PathBuf {
    repository.join("objects/info/alternates")
}

/// Returns the entries of a directory; none if it does not exist.
fn list_directory(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = StoreError::when("list", path);
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    paths.map_err(failed)
}

//! Commits on their way from the sandbox into the host's repository: unpacked into a separate
//! directory with every object checked, inspected there, and only then imported.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ralph_core::id::CommitId;

use super::{GitError, History, HostRepo};
use crate::durable::{self, StoreError};

/// The largest object that is accepted: a larger one could not be searched for secrets.
const MAX_OBJECT: u64 = crate::rules::MAX_SEARCHED;

/// Commits in a directory beside the repository. They are removed on drop.
pub struct IncomingCommits {
    repo: HostRepo,
    branch: String,
    quarantine: QuarantineDir,
    head: CommitId,
}

/// A directory for objects that is removed on drop.
struct QuarantineDir(PathBuf);

impl QuarantineDir {
    fn create(objects: PathBuf) -> Result<Self, StoreError> {
        durable::remove_tree(&objects)?;
        fs::create_dir_all(&objects).map_err(StoreError::when("create", &objects))?;
        Ok(Self(objects))
    }
}

impl Drop for QuarantineDir {
    fn drop(&mut self) {
        durable::warn_if_failed("remove quarantined objects", fs::remove_dir_all(&self.0));
    }
}

impl HostRepo {
    /// Unpacks a bundle's branch into the directory `objects`, separate from the repository's own,
    /// if every object is valid and none is missing.
    pub async fn receive(
        &self,
        bundle: &[u8],
        branch: &str,
        objects: PathBuf,
    ) -> Result<IncomingCommits, GitError> {
        let (head, pack) = split_bundle(bundle, branch).ok_or_else(|| GitError::InSandbox {
            command: "bundle".into(),
            message: format!("its output is not a bundle of `{branch}`"),
        })?;
        let quarantine = QuarantineDir::create(objects)?;
        // The command that `git fetch` starts, without its reachability checks: the repository
        // never contains incomplete commits, so it is enough to check the references of the new
        // objects.
        let size = format!("--max-input-size={}", pack.len());
        let args = ["index-pack", "--stdin", "--fix-thin", "--strict", &size];
        let view = self.with_object_dir(quarantine.0.clone());
        view.run_with_input(&args, pack).await?;
        view.refuse_large_objects(&quarantine.0, &head).await?;
        Ok(IncomingCommits {
            repo: self.clone(),
            branch: branch.to_owned(),
            quarantine,
            head,
        })
    }
}

impl HostRepo {
    /// Refuses new objects that are too large. The size of a pack is no indication: a gibibyte of
    /// zeros needs a mebibyte.
    async fn refuse_large_objects(&self, objects: &Path, head: &CommitId) -> Result<(), GitError> {
        let ids = self.packed_ids(&objects.join("pack")).await?;
        let args = ["cat-file", "--batch-check=%(objectname) %(objectsize)"];
        let sizes = self.run_with_input(&args, ids.as_bytes()).await?;
        let large = sizes.lines().find_map(|line| {
            let (id, size) = line.split_once(' ')?;
            let size = size.parse::<u64>().unwrap_or(0);
            (size > MAX_OBJECT).then(|| (id.to_owned(), size))
        });
        let Some((id, size)) = large else {
            return Ok(());
        };
        Err(GitError::TooLarge {
            what: self.path_of_object(&id, head).await,
            size,
            limit: MAX_OBJECT,
        })
    }

    /// Returns the ids of all objects in the packs of a directory, one per line.
    async fn packed_ids(&self, packs: &Path) -> Result<String, GitError> {
        let mut ids = String::new();
        let failed = StoreError::when("list", packs);
        let entries = match fs::read_dir(packs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ids),
            Err(error) => return Err(failed(error).into()),
        };
        let entries: io::Result<Vec<fs::DirEntry>> = entries.collect();
        for entry in entries.map_err(failed)? {
            let file = entry.path();
            if file.extension().is_none_or(|end| end != "idx") {
                continue;
            }
            let index = fs::read(&file).map_err(StoreError::when("read", &file))?;
            let listed = self.run_with_input(&["show-index"], &index).await?;
            for id in listed.lines().filter_map(|line| line.split(' ').nth(1)) {
                ids.push_str(id);
                ids.push('\n');
            }
        }
        Ok(ids)
    }

    /// Returns the path of an object in the last commits, or the object's id.
    async fn path_of_object(&self, object: &str, head: &CommitId) -> String {
        let find = format!("--find-object={object}");
        let args = [
            "log",
            "--format=",
            "--name-only",
            "--max-count=1",
            &find,
            head.as_str(),
        ];
        let found = self.run(&args).await.unwrap_or_else(|error| {
            tracing::warn!("cannot find the file of object {object}: {error}");
            String::new()
        });
        let path = found.lines().find(|line| !line.is_empty());
        path.map_or_else(|| format!("object {object}"), |path| format!("`{path}`"))
    }
}

/// Returns the head of a bundle's branch, and the pack, which follows the header lines and an empty
/// line.
fn split_bundle<'a>(bundle: &'a [u8], branch: &str) -> Option<(CommitId, &'a [u8])> {
    let end = bundle.windows(2).position(|pair| pair == b"\n\n")?;
    let heading = String::from_utf8_lossy(&bundle[..end]);
    let head = heading.lines().skip(1).find_map(|line| {
        let (id, name) = line.split_once(' ')?;
        let is_branch = name.strip_prefix("refs/heads/") == Some(branch);
        CommitId::parse(id).filter(|_| is_branch)
    })?;
    Some((head, &bundle[end + 2..]))
}

impl IncomingCommits {
    /// Returns the last of the commits.
    pub fn head(&self) -> &CommitId {
        &self.head
    }

    /// Reads the commits after `known`; none if they are larger than `limit`.
    pub async fn history(&self, known: &CommitId, limit: u64) -> Result<Option<History>, GitError> {
        let view = self.repo.with_object_dir(self.quarantine.0.clone());
        view.history(known, &self.head, limit).await
    }

    /// Imports the commits and moves the branch from `known` to the last of them. Idempotent. The
    /// commits survive a power cut.
    pub async fn accept(self, known: &CommitId) -> Result<(), GitError> {
        self.move_packs()?;
        let reference = format!("refs/heads/{}", self.branch);
        let args = ["update-ref", &reference, self.head.as_str(), known.as_str()];
        if let Err(error) = self.repo.run(&args).await {
            // A crash may have come between the update and its record.
            if self.repo.head(&self.branch).await? != self.head {
                return Err(error);
            }
        }
        self.repo.repack_if_needed().await;
        Ok(self.repo.sync()?)
    }

    /// Moves the objects into the repository.
    fn move_packs(&self) -> Result<(), StoreError> {
        let (from, to) = (
            self.quarantine.0.join("pack"),
            self.repo.path().join("objects/pack"),
        );
        let entries = match fs::read_dir(&from) {
            // A crash came after the move, so there was nothing to fetch again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(StoreError::when("list", &from))?,
        };
        let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
        let mut names = names.map_err(StoreError::when("list", &from))?;
        // A pack is visible once its index exists, so the index is moved last.
        names.sort_by_key(|name| Path::new(name).extension().is_some_and(|end| end == "idx"));
        for name in names {
            let file = from.join(&name);
            fs::rename(&file, to.join(&name)).map_err(StoreError::when("rename", &file))?;
        }
        // Sync before the ref that names them.
        durable::sync_dir(&to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_a_heading_and_a_pack() {
        let (head, other) = ("a".repeat(40), "b".repeat(40));
        let bundle = |lines: &str| format!("# v2 git bundle\n{lines}\nPACK\n\n").into_bytes();
        let known = format!("-{other} refs/heads/ralph/x\n");
        let tip = format!("{head} refs/heads/ralph/x\n");
        let whole = bundle(&format!("{known}{other} refs/heads/ralph\n{tip}"));
        let expected = CommitId::parse(&head).map(|id| (id, &b"PACK\n\n"[..]));
        assert_eq!(split_bundle(&whole, "ralph/x"), expected);
        for lines in ["", &known, "refs/heads/ralph/x\n", "x refs/heads/ralph/x\n"] {
            assert_eq!(split_bundle(&bundle(lines), "ralph/x"), None, "{lines}");
        }
        assert_eq!(split_bundle(tip.as_bytes(), "ralph/x"), None);
    }
}

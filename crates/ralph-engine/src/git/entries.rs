//! The entries of a branch that are not plain files.

use std::collections::BTreeSet;

use ralph_core::id::CommitId;
use ralph_core::surface::{
    SurfaceFinding, TreeEntry, TreeEntryKind, bare_repository_candidates, bare_repository_finding,
    is_bare_repository, suspicious_entries,
};

use super::GitError;
use super::host::HostRepo;

/// The most links whose targets are read, and directories that are inspected. A branch with more of
/// them is reported as such.
const MAX_LOOKUPS: usize = 200;

impl HostRepo {
    /// Returns the links out of the tree, nested repositories and bare repositories that a branch
    /// adds or changes.
    pub async fn strange_entries(
        &self,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<Vec<SurfaceFinding>, GitError> {
        let entries = self.changed_entries(from, to).await?;
        let mut found = suspicious_entries(&entries);
        let candidates = bare_repository_candidates(&entries);
        let (inspected, count) = (candidates.iter().take(MAX_LOOKUPS), candidates.len());
        for directory in inspected {
            if is_bare_repository(&self.names_in_directory(to, directory).await?) {
                found.push(bare_repository_finding(directory));
            }
        }
        if count > MAX_LOOKUPS {
            found.push(SurfaceFinding {
                path: "./".to_owned(),
                why: format!(
                    "{count} directories could be bare repositories; not all were inspected"
                ),
            });
        }
        Ok(found)
    }

    /// Returns the entries that a branch adds or changes, as `git diff-tree --raw -z` prints them.
    pub(super) async fn raw_changes(
        &self,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<String, GitError> {
        let arguments = [
            "diff-tree",
            "-r",
            "--no-renames",
            "--raw",
            "--no-abbrev",
            "--diff-filter=d",
            "-z",
            from.as_str(),
            to.as_str(),
        ];
        self.run(&arguments).await
    }

    async fn changed_entries(
        &self,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<Vec<TreeEntry>, GitError> {
        let text = self.raw_changes(from, to).await?;
        let mut parts = text.split('\0');
        let mut entries = Vec::new();
        let mut links = 0;
        while let (Some(meta), Some(path)) = (parts.next(), parts.next()) {
            let mut fields = meta.split(' ').skip(1);
            let (mode, object) = (fields.next(), fields.nth(1));
            let kind = match (mode, object) {
                (Some("160000"), _) => TreeEntryKind::Repository,
                (Some("120000"), Some(object)) => {
                    links += 1;
                    TreeEntryKind::Link(self.link_target(object, links).await?)
                }
                (Some(_) | None, _) => TreeEntryKind::File,
            };
            entries.push(TreeEntry {
                path: path.to_owned(),
                kind,
            });
        }
        Ok(entries)
    }

    /// Returns the target of a link; beyond the limit a link counts as leading out of the tree.
    async fn link_target(&self, object: &str, number: usize) -> Result<String, GitError> {
        if number > MAX_LOOKUPS {
            return Ok("/(not read)".to_owned());
        }
        self.run(&["cat-file", "blob", object]).await
    }

    /// Returns the names in a directory of a commit.
    async fn names_in_directory(
        &self,
        commit: &CommitId,
        directory: &str,
    ) -> Result<BTreeSet<String>, GitError> {
        let tree = format!("{commit}:{directory}");
        let text = self.run(&["ls-tree", "--name-only", "-z", &tree]).await?;
        Ok(text.split('\0').map(str::to_owned).collect())
    }
}

//! The files of a commit in the host's repository, for readers of a run without a sandbox.

use ralph_core::id::CommitId;
use ralph_core::path::WorkspacePath;
use ralph_core::ports::SandboxEntryKind;

use super::{GitError, HostRepo};

/// A file or directory of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitEntry {
    /// Relative to the repository's root.
    pub path: String,
    pub kind: SandboxEntryKind,
    /// In bytes; 0 for a directory.
    pub size: u64,
}

impl HostRepo {
    /// Returns the files and directories of a commit; none if the list is longer than
    /// `MAX_LIST`.
    pub async fn commit_entries(
        &self,
        commit: &CommitId,
    ) -> Result<Option<Vec<CommitEntry>>, GitError> {
        let args = ["ls-tree", "-r", "-t", "-l", "-z", commit.as_str()];
        let listed = self.read_output(&args, Self::MAX_LIST).await?;
        Ok(listed.map(|bytes| parse_entries(&bytes)))
    }

    /// Returns the entry of a path in a commit; none if it does not exist.
    pub async fn commit_entry(
        &self,
        commit: &CommitId,
        path: &WorkspacePath,
    ) -> Result<Option<CommitEntry>, GitError> {
        let args = [
            "ls-tree",
            "-l",
            "-z",
            "--full-tree",
            commit.as_str(),
            "--",
            path.as_str(),
        ];
        let listed = self.read_output(&args, Self::MAX_LIST).await?;
        let entries = parse_entries(&listed.unwrap_or_default());
        Ok(entries
            .into_iter()
            .find(|entry| entry.path == path.as_str()))
    }

    /// Returns the content of a file of a commit; none if it is longer than `limit`.
    pub async fn commit_file(
        &self,
        commit: &CommitId,
        path: &WorkspacePath,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let object = format!("{commit}:{path}");
        self.read_output(&["cat-file", "blob", &object], limit)
            .await
    }
}

/// Parses the lines `MODE TYPE OBJECT SIZE\tPATH` of `git ls-tree -l -z`.
fn parse_entries(bytes: &[u8]) -> Vec<CommitEntry> {
    let text = String::from_utf8_lossy(bytes);
    let entry = |line: &str| {
        let (head, path) = line.split_once('\t')?;
        let mut fields = head.split_ascii_whitespace();
        let mode = fields.next()?;
        let kind = match mode {
            "040000" => SandboxEntryKind::Directory,
            "120000" => SandboxEntryKind::Link,
            "160000" => SandboxEntryKind::Special,
            _ => SandboxEntryKind::File,
        };
        // A directory has a dash instead of a size.
        let size = fields.nth(2)?.parse().unwrap_or(0);
        Some(CommitEntry {
            path: path.to_owned(),
            kind,
            size,
        })
    };
    text.split('\0').filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_their_kind_and_size() {
        let listed = b"040000 tree aaaa       -\tsrc\x00100644 blob bbbb      12\tsrc/a b.rs\x00120000 blob cccc       4\tlink\0";
        let entries = parse_entries(listed);
        let shown: Vec<(&str, SandboxEntryKind, u64)> = entries
            .iter()
            .map(|entry| (entry.path.as_str(), entry.kind, entry.size))
            .collect();
        assert_eq!(
            shown,
            [
                ("src", SandboxEntryKind::Directory, 0),
                ("src/a b.rs", SandboxEntryKind::File, 12),
                ("link", SandboxEntryKind::Link, 4),
            ]
        );
    }
}

//! Files, line counts and added lines of commits in the host's repository, all with limits.

use std::collections::BTreeMap;

use ralph_core::id::CommitId;

use super::file_diff::BARE_DIFF;
use super::{GitError, HostRepo};

impl HostRepo {
    /// The most bytes of a list of paths.
    pub(crate) const MAX_LIST: u64 = 64 << 20;

    /// Returns the paths of a commit's files; none if the list is longer than [`Self::MAX_LIST`].
    pub(crate) async fn list_files(
        &self,
        commit: &CommitId,
    ) -> Result<Option<Vec<String>>, GitError> {
        let args = ["ls-tree", "-r", "--name-only", "-z", commit.as_str()];
        let Some(bytes) = self.read_output(&args, Self::MAX_LIST).await? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        let paths = text.split('\0').filter(|path| !path.is_empty());
        Ok(Some(paths.map(str::to_owned).collect()))
    }

    /// Returns the text of a file in a commit; none if it is missing or longer than `limit`.
    pub(crate) async fn file_text(
        &self,
        commit: &CommitId,
        path: &str,
        limit: u64,
    ) -> Result<Option<String>, GitError> {
        let object = format!("{commit}:{path}");
        match self
            .read_output(&["cat-file", "blob", &object], limit)
            .await
        {
            Ok(bytes) => Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())),
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the numbers of lines that were added to and removed from each file between two
    /// commits; empty if the list is longer than [`Self::MAX_LIST`].
    pub(crate) async fn line_changes(
        &self,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<BTreeMap<String, (u64, u64)>, GitError> {
        let args = [
            "diff",
            "--numstat",
            "--no-renames",
            "-z",
            from.as_str(),
            to.as_str(),
        ];
        let listed = self.read_output(&args, Self::MAX_LIST).await?;
        let bytes = listed.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let entry = |entry: &str| {
            let mut fields = entry.splitn(3, '\t');
            // Binary files have dashes instead of numbers.
            let mut number = || Some(fields.next()?.parse().unwrap_or(0));
            let (added, removed) = (number()?, number()?);
            Some((fields.next()?.to_owned(), (added, removed)))
        };
        Ok(text.split('\0').filter_map(entry).collect())
    }

    /// Returns the diff between two commits without context; none if it is longer than `limit`.
    pub(crate) async fn bare_diff(
        &self,
        from: &CommitId,
        to: &CommitId,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let commits = [from.as_str(), to.as_str()];
        let args: Vec<&str> = BARE_DIFF.into_iter().chain(commits).collect();
        self.read_output(&args, limit).await
    }
}

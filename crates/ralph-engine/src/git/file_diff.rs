//! The diff of chosen files between two commits of the host's repository.

use ralph_core::id::CommitId;

use super::survey::literal_pathspec;
use super::{GitError, HostRepo};

/// The most bytes of paths in one git command; systems limit an argument list to 128 KiB or more.
const MAX_PATH_BYTES: usize = 64 << 10;

/// The arguments of a diff without context. Attributes of the tree could declare source code to be
/// binary, and configuration could enable the detection of renames.
pub(super) const BARE_DIFF: [&str; 10] = [
    "-c",
    "core.quotePath=false",
    "diff",
    "--text",
    "--unified=0",
    "--irreversible-delete",
    "--no-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
];

impl HostRepo {
    /// Returns the diff of some files, without context, and of removed ones without their lines;
    /// none if it is larger than `limit`.
    pub async fn diff_of_files(
        &self,
        from: &CommitId,
        to: &CommitId,
        paths: &[&str],
        limit: u64,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let mut diff = Vec::new();
        for chunk in chunk_paths(paths) {
            let commits = [from.as_str(), to.as_str(), "--"];
            let selected: Vec<String> = chunk.iter().map(|path| literal_pathspec(path)).collect();
            let args: Vec<&str> = BARE_DIFF
                .into_iter()
                .chain(commits)
                .chain(selected.iter().map(String::as_str))
                .collect();
            let left = limit.saturating_sub(diff.len() as u64);
            let Some(part) = self.read_output(&args, left).await? else {
                return Ok(None);
            };
            diff.extend(part);
        }
        Ok(Some(diff))
    }
}

/// Splits a list of paths into parts that fit an argument list.
fn chunk_paths<'p>(mut paths: &'p [&'p str]) -> Vec<&'p [&'p str]> {
    let mut parts = Vec::new();
    while !paths.is_empty() {
        let mut bytes = 0;
        let fits = |path: &&&str| {
            bytes += path.len() + 1;
            bytes <= MAX_PATH_BYTES
        };
        let count = paths.iter().take_while(fits).count().max(1);
        let (part, rest) = paths.split_at(count);
        parts.push(part);
        paths = rest;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_in_one_part() {
        let long = "x".repeat(MAX_PATH_BYTES - 3);
        let paths = ["a", &long, "b", "c"];
        let parts = chunk_paths(&paths);
        assert_eq!(parts.concat(), paths);
        assert_eq!(parts.len(), 2);
        assert!(chunk_paths(&[]).is_empty());
    }
}

//! Entries of a branch that are the commit of another repository instead of files.

use std::collections::BTreeSet;

use ralph_core::id::CommitId;

use super::{GitError, HostRepo};

/// The largest list of submodules, in bytes.
const MAX_LIST: u64 = 16 << 20;

/// An entry that contains only the id of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedRepository {
    pub path: String,
    pub commit: String,
    /// Whether `.gitmodules` has an entry for the path.
    pub is_submodule: bool,
}

impl HostRepo {
    /// Returns the nested repositories that a branch adds or changes.
    pub(crate) async fn nested_repositories(
        &self,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<Vec<NestedRepository>, GitError> {
        let mut nested = parse_nested(&self.raw_changes(from, to).await?);
        if nested.is_empty() {
            return Ok(nested);
        }
        let submodules = self.submodules(to).await?;
        for repository in &mut nested {
            repository.is_submodule = submodules.contains(&repository.path);
        }
        Ok(nested)
    }

    /// Returns the paths in the `.gitmodules` of a commit; none if the file is missing or invalid.
    async fn submodules(&self, commit: &CommitId) -> Result<BTreeSet<String>, GitError> {
        let blob = format!("--blob={commit}:.gitmodules");
        let args = [
            "config",
            &blob,
            "-z",
            "--get-regexp",
            r"^submodule\..*\.path$",
        ];
        let listed = match self.read_output(&args, MAX_LIST).await {
            Ok(listed) => listed.unwrap_or_default(),
            Err(GitError::Failed { .. }) => return Ok(BTreeSet::new()),
            Err(error) => return Err(error),
        };
        let listed = String::from_utf8_lossy(&listed);
        let values = listed
            .split('\0')
            .filter_map(|entry| entry.split_once('\n'));
        Ok(values
            .map(|(_, path)| path.trim_end_matches('/').to_owned())
            .collect())
    }
}

/// Reads `:mode mode old new letter NUL path NUL` records.
fn parse_nested(raw: &str) -> Vec<NestedRepository> {
    let mut parts = raw.split('\0');
    let mut nested = Vec::new();
    while let (Some(meta), Some(path)) = (parts.next(), parts.next()) {
        let fields: Vec<&str> = meta.split(' ').collect();
        if let [_, "160000", _, commit, _] = fields.as_slice() {
            nested.push(NestedRepository {
                path: path.to_owned(),
                commit: (*commit).to_owned(),
                is_submodule: false,
            });
        }
    }
    nested
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commits_are_listed() {
        let (a, b, none) = ("a".repeat(40), "b".repeat(40), "0".repeat(40));
        let raw = format!(
            ":100644 100644 {a} {b} M\0src/a b.rs\0:000000 160000 {none} {b} A\0vendor/lib\0\
             :160000 100644 {a} {b} T\0gone\0"
        );
        assert_eq!(
            parse_nested(&raw),
            [NestedRepository {
                path: "vendor/lib".into(),
                commit: b,
                is_submodule: false,
            }]
        );
    }
}

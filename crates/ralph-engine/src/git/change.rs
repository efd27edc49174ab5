//! The changes of an iteration: compares the files before and after it, committed or not.

use std::time::Duration;

use ralph_core::gutter::{FileState, IterationFacts};
use ralph_core::ports::Exec;

use super::WorkTree;
use super::sandbox::{SandboxGit, pathspecs};
use crate::error::RunError;

/// The changes between two moments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IterationChange {
    /// The id of the tree of all files.
    pub tree: String,
    /// The id of the tree or commit that it was compared with; empty if nothing was compared.
    pub since: String,
    /// Lines added and removed.
    pub lines: u64,
    pub binary_files: u64,
    pub files: Vec<FileState>,
}

/// The files are recorded in a separate index, which is kept so that git reads only changed files
/// again. If the earlier tree is gone together with its sandbox, the commit `$2` replaces it.
const SCRIPT: &str = "set -e; export GIT_INDEX_FILE=\"$PWD/.git/ralph.files\"; \
    if [ ! -e \"$GIT_INDEX_FILE\" ]; then git read-tree HEAD; fi; \
    from=$1; git cat-file -e \"$from^{tree}\" 2>/dev/null || from=$2; shift 2; \
    git add --all --ignore-errors -- \"$@\" >/dev/null 2>&1 || true; \
    tree=$(git write-tree) || { rm -f \"$GIT_INDEX_FILE\"; exit 1; }; \
    printf '%s\\0%s\\0' \"$tree\" \"$from\"; \
    git diff-tree -r -z --raw --numstat --no-renames --no-abbrev --no-ext-diff --no-textconv \
        \"$from\" \"$tree\" -- \"$@\"";

/// The timeout for recording the files. Without a result the size of the diff is used.
const RECORD_TIMEOUT: Duration = Duration::from_secs(30);

impl SandboxGit<'_> {
    /// Records the current files, and compares them with an earlier record or, if that is gone,
    /// with a commit.
    pub async fn change_since(
        &self,
        earlier: &str,
        commit: &str,
        tree: &WorkTree,
    ) -> Result<IterationChange, RunError> {
        let earlier = if earlier.is_empty() { commit } else { earlier };
        let argv = ["sh", "-c", SCRIPT, "sh", earlier, commit].map(String::from);
        let exec = Exec::argv(argv.into_iter().chain(pathspecs(tree)), RECORD_TIMEOUT);
        let output = self.exec_checked("diff-tree", exec).await?;
        Ok(parse_change(&String::from_utf8_lossy(&output)))
    }
}

fn parse_change(output: &str) -> IterationChange {
    let mut parts = output.split('\0');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let mut change = IterationChange {
        tree: next(),
        since: next(),
        ..IterationChange::default()
    };
    while let Some(part) = parts.next() {
        if let Some(raw) = part.strip_prefix(':') {
            let after = raw.split(' ').nth(3).unwrap_or_default();
            let path = parts.next().unwrap_or_default();
            if change.files.len() < IterationFacts::MAX_FILES {
                let is_gone = after.bytes().all(|byte| byte == b'0');
                change.files.push(FileState {
                    path: path.chars().take(MAX_PATH).collect(),
                    after: (!is_gone).then(|| after.chars().take(SHORT_ID_LENGTH).collect()),
                });
            }
            continue;
        }
        let counts: Vec<&str> = part.splitn(3, '\t').collect();
        if let [added, removed, _] = counts.as_slice() {
            let (added, removed) = (added.parse::<u64>(), removed.parse::<u64>());
            match (added, removed) {
                (Ok(added), Ok(removed)) => {
                    change.lines = change.lines.saturating_add(added).saturating_add(removed);
                }
                (Err(_), _) | (_, Err(_)) => change.binary_files += 1,
            }
        }
    }
    change
}

/// The longest stored path, in characters.
const MAX_PATH: usize = 200;
/// The stored length of an object id: long enough to avoid collisions.
const SHORT_ID_LENGTH: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_tree_output_is_parsed() {
        let (a, b, none) = ("a".repeat(40), "b".repeat(40), "0".repeat(40));
        let output = format!(
            "{b}\0{a}\0:100644 100644 {a} {b} M\0src/a b.rs\0:100644 000000 {a} {none} D\0gone\0\
             :000000 100644 {none} {a} A\0x.png\03\t2\tsrc/a b.rs\00\t4\tgone\0-\t-\tx.png\0"
        );
        let mark = |path: &str, after: Option<&str>| FileState {
            path: path.into(),
            after: after.map(|after| after[..16].to_owned()),
        };
        assert_eq!(
            parse_change(&output),
            IterationChange {
                tree: b.clone(),
                since: a.clone(),
                lines: 9,
                binary_files: 1,
                files: vec![
                    mark("src/a b.rs", Some(&b)),
                    mark("gone", None),
                    mark("x.png", Some(&a)),
                ],
            }
        );
        assert_eq!(parse_change(""), IterationChange::default());
    }
}

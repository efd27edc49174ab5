//! The work trees of one repository (`git worktree`): they share branches, and so the runs that own
//! them. Only files are read, because git is not needed for it and may be slow.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The largest `.git` file or `commondir` that is read.
const MAX_BYTES: u64 = 64 * 1024;

/// A repository, as seen from one of its work trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedWorktrees {
    path: PathBuf,
    common_dir: Option<PathBuf>,
}

impl LinkedWorktrees {
    /// Finds the repository of a work tree, or a bare repository, by its top level.
    pub fn find(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            common_dir: common_dir(path),
        }
    }

    /// Returns whether `path` is this work tree or another one of the same repository.
    pub fn contains(&self, path: &Path) -> bool {
        path == self.path || (self.common_dir.is_some() && common_dir(path) == self.common_dir)
    }

    /// Returns the top level of the main work tree; for a bare repository with work trees, the
    /// repository.
    pub fn main(&self) -> &Path {
        let is_linked = self.path.join(".git").is_file();
        match &self.common_dir {
            // Some users hide the bare repository of their work trees in `.bare`.
            Some(common) if is_linked && is_hidden(common) => common.parent().unwrap_or(&self.path),
            // A submodule's directory is below that of its superproject.
            Some(common) if is_linked && !is_submodule(common) => common,
            Some(_) | None => &self.path,
        }
    }
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with('.')
}

fn is_submodule(common_dir: &Path) -> bool {
    let mut ancestors = common_dir.ancestors().skip(1);
    ancestors.any(|directory| directory.ends_with(".git/modules"))
}

/// Returns the directory that all work trees of a repository share; `None` if there is none.
fn common_dir(top: &Path) -> Option<PathBuf> {
    match find_common_dir(top) {
        Ok(found) => Some(found),
        Err(error) => {
            tracing::debug!(%error, path = %top.display(), "no repository is known");
            None
        }
    }
}

fn find_common_dir(top: &Path) -> io::Result<PathBuf> {
    let dot_git = top.join(".git");
    let git_dir = if dot_git.is_dir() {
        dot_git
    } else if dot_git.is_file() {
        let text = read_line(&dot_git)?;
        let target = text.strip_prefix("gitdir:").unwrap_or_default().trim();
        top.join(target)
    } else {
        // A bare repository is its own directory.
        top.join("HEAD").metadata()?;
        top.to_owned()
    };
    let link = git_dir.join("commondir");
    let common = if link.is_file() {
        git_dir.join(read_line(&link)?)
    } else {
        git_dir
    };
    common.canonicalize()
}

/// Reads a file that contains one line.
fn read_line(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(MAX_BYTES)
        .read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use ralph_test::{create_repository, git};

    use super::*;

    #[test]
    fn work_trees_of_one_repository_belong_together() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let [main, other] = ["main", "other"].map(|name| root.join(name));
        for path in [&main, &other] {
            std::fs::create_dir(path).unwrap();
            create_repository(path);
        }
        let add = |from: &Path, name: &str| {
            let path = root.join(name);
            git(
                from,
                &[
                    "worktree",
                    "add",
                    "--quiet",
                    "--detach",
                    path.to_str().unwrap(),
                ],
            );
            path
        };
        let (one, two) = (add(&main, "one"), add(&main, "two"));
        let bare = root.join("bare.git");
        let bare_path = bare.to_str().unwrap();
        git(&main, &["clone", "--quiet", "--bare", ".", bare_path]);
        let three = add(&bare, "three");

        let found = LinkedWorktrees::find(&one);
        for path in [&main, &one, &two] {
            assert!(found.contains(path), "{}", path.display());
        }
        for path in [&other, &bare, &three, &root, &root.join("gone")] {
            assert!(!found.contains(path), "{}", path.display());
        }
        assert!(LinkedWorktrees::find(&bare).contains(&three));
        for (path, expected) in [
            (&main, &main),
            (&one, &main),
            (&two, &main),
            (&bare, &bare),
            (&three, &bare),
            (&root, &root),
        ] {
            assert_eq!(LinkedWorktrees::find(path).main(), expected);
        }
        // A directory without a repository is only itself.
        assert!(LinkedWorktrees::find(&root).contains(&root));
    }

    #[test]
    fn a_submodule_is_not_a_linked_work_tree() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (parent, child) = (root.join("parent"), root.join("child"));
        for path in [&parent, &child] {
            std::fs::create_dir(path).unwrap();
            create_repository(path);
        }
        let add = [
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
        ];
        let names = [child.to_str().unwrap(), "vendored"];
        git(&parent, &[&add[..], &names].concat());
        let inside = parent.join("vendored");
        let found = LinkedWorktrees::find(&inside);
        assert_eq!(found.main(), inside);
        assert!(!found.contains(&parent) && !found.contains(&child));
    }
}

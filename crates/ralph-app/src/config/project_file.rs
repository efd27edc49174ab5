//! Searches for a project's configuration files.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::{self, ConfigFileError};
use super::regular_file::project_root;

/// A configuration file of a project, which may be unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    pub path: PathBuf,
    /// The directory that must contain the file: its repository, or else its parent directory.
    pub root: PathBuf,
}

impl ProjectFile {
    /// Reads the file.
    pub fn read(&self) -> Result<String, ConfigFileError> {
        error::read_repository_file(&self.path, &self.root)
    }

    /// Returns the path for messages and approvals, relative to the root of the repository.
    pub fn display_name(&self) -> String {
        let inside = self.path.strip_prefix(&self.root);
        inside.unwrap_or(&self.path).display().to_string()
    }
}

/// Returns the nearest file of this name, in `from` or an ancestor.
pub fn find_project_file(from: &Path, name: &str) -> Option<ProjectFile> {
    from.ancestors().find_map(|directory| {
        let path = directory.join(name);
        // The link itself counts: a broken symbolic link is an error, not a missing file.
        if let Err(error) = path.symlink_metadata() {
            if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                tracing::warn!(%error, "cannot search for `{}`", path.display());
            }
            return None;
        }
        let root = project_root(directory).to_owned();
        Some(ProjectFile { path, root })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_wins() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(find_project_file(&inner, "ralph-find-test.toml"), None);
        let outer_file = root.path().join("ralph-find-test.toml");
        std::fs::write(&outer_file, "").unwrap();
        let found =
            |inner: &Path| find_project_file(inner, "ralph-find-test.toml").map(|file| file.path);
        assert_eq!(found(&inner), Some(outer_file));
        let inner_file = inner.join("ralph-find-test.toml");
        std::fs::write(&inner_file, "").unwrap();
        assert_eq!(found(&inner), Some(inner_file));
    }
}

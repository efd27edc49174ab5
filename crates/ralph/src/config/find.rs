//! Finds a project's file.

use std::path::{Path, PathBuf};

/// Returns the nearest file with this name, in `from` or in a directory above it.
pub fn find(from: &Path, name: &str) -> Option<PathBuf> {
    from.ancestors()
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_wins() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(find(&inner, "ralph-find-test.toml"), None);
        let outer_file = root.path().join("ralph-find-test.toml");
        std::fs::write(&outer_file, "").unwrap();
        assert_eq!(find(&inner, "ralph-find-test.toml"), Some(outer_file));
        let inner_file = inner.join("ralph-find-test.toml");
        std::fs::write(&inner_file, "").unwrap();
        assert_eq!(find(&inner, "ralph-find-test.toml"), Some(inner_file));
    }
}

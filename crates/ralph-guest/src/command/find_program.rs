//! Finds programs in the directories of `PATH`, like a shell.

use std::ffi::OsStr;
use std::path::PathBuf;

use rustix::fs::{Access, access};

/// Returns the file for a bare program name. Returns `None` if the system has to resolve the name: a
/// name with a slash is a path already, and the search ends at a relative directory, which depends on
/// the working directory.
pub fn find_program(search_path: &OsStr, program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return None;
    }
    std::env::split_paths(search_path)
        .take_while(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
        .find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn only_absolute_directories_are_searched() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink("/bin/sh", bin.join("tool")).unwrap();
        std::fs::write(dir.path().join("tool"), "not executable").unwrap();
        let path = |parts: &[&Path]| std::env::join_paths(parts).unwrap();
        let (root, relative) = (dir.path(), Path::new("bin"));
        let found = Some(bin.join("tool"));
        assert_eq!(find_program(&path(&[root, &bin]), "tool"), found);
        assert_eq!(find_program(&path(&[relative, &bin]), "tool"), None);
        assert_eq!(find_program(&path(&[&bin]), "bin/tool"), None);
        assert_eq!(find_program(&path(&[root]), "tool"), None);
    }
}

//! Finds programs as a shell does: by the directories of `PATH`, in their order.

use std::ffi::OsStr;
use std::path::PathBuf;

use rustix::fs::{Access, access};

/// Returns the file that a bare name stands for. A name with a slash is a path already, and a
/// relative directory means another one to every command: both are left to the system.
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

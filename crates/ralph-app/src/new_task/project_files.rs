//! Reads the files of a project that its detection needs.

use std::fs;
use std::path::Path;

use ralph_core::ecosystem::{
    DetectedProject, LISTED_DIRECTORIES, ProjectFiles, READ_FILES, detect_project,
};

use crate::config::read_regular;

/// The most entries of a directory that are listed.
pub(super) const MAX_ENTRIES: usize = 10_000;

/// The most bytes of a file that are read.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 20;

/// Finds the languages and test commands of a directory in a repository. If the directory is not
/// the top level, the commands change to it, because checks run at the top level.
pub(super) fn detect_in(directory: &Path, top: &Path) -> DetectedProject {
    let mut project = detect_project(&list_files(directory, top));
    let Ok(relative) = directory.strip_prefix(top) else {
        return project;
    };
    let Some(relative) = relative.to_str().filter(|path| !path.is_empty()) else {
        return project;
    };
    for test in &mut project.test_commands {
        test.command = format!("cd {} && {}", shell_quoted(relative), test.command);
        test.origin = format!("{} in {relative}", test.origin);
    }
    let setup = project.setup_command.take();
    project.setup_command = setup.map(|setup| format!("cd {} && {setup}", shell_quoted(relative)));
    project
}

/// Lists a directory and reads the files of [`READ_FILES`]. A file that cannot be read, or that a
/// link places outside the repository, only counts by its name.
fn list_files(directory: &Path, top: &Path) -> ProjectFiles {
    let mut files = ProjectFiles::default();
    for name in entry_names(directory) {
        files.add_name(name);
    }
    for listed in LISTED_DIRECTORIES {
        for name in entry_names(&directory.join(listed)) {
            files.add_name(format!("{listed}/{name}"));
        }
    }
    let read_files = READ_FILES.into_iter().map(str::to_owned);
    let read_files: Vec<String> = read_files.chain(files.python_tests()).collect();
    for name in read_files {
        match read_regular(&directory.join(&name), top, MAX_FILE_BYTES) {
            Ok(file) => files.add_text(name, String::from_utf8_lossy(&file.bytes)),
            Err(error) if error.is_missing() => {}
            Err(error) => tracing::warn!(%error, "cannot read `{name}` to find the tests"),
        }
    }
    files
}

/// Returns the names in a directory; none if it cannot be listed.
fn entry_names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let entries = entries.take(MAX_ENTRIES).flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str().map(str::to_owned));
    names.collect()
}

/// Returns a path as one word of a shell command.
fn shell_quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if path.chars().all(is_plain) && !path.starts_with('-') {
        return path.to_owned();
    }
    let start = if path.starts_with('-') { "./" } else { "" };
    format!("'{start}{}'", path.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn commands(directory: &Path, top: &Path) -> Vec<String> {
        let project = detect_in(directory, top);
        let tests = project.test_commands.into_iter();
        tests.map(|test| test.command).collect()
    }

    #[test]
    fn a_project_below_the_top_level_changes_the_directory() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        for (directory, command) in [
            ("", "go test ./..."),
            ("a/b", "cd a/b && go test ./..."),
            ("it's here", "cd 'it'\\''s here' && go test ./..."),
            ("-x", "cd './-x' && go test ./..."),
        ] {
            let directory = top.join(directory);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("go.mod"), "module a\n").unwrap();
            assert_eq!(commands(&directory, &top), [command]);
        }
    }

    #[test]
    fn listed_directories_and_read_files_count() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        fs::create_dir(top.join("tests")).unwrap();
        fs::write(top.join("tests/test_a.py"), "import unittest\n").unwrap();
        fs::write(top.join("Makefile"), "test:\n\ttrue\n").unwrap();
        let unittest = "python3 -m unittest discover -s tests";
        assert_eq!(commands(&top, &top), [unittest, "make test"]);
    }

    #[test]
    fn unreadable_files_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        fs::write(outside.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
        symlink(outside.path().join("Makefile"), top.join("Makefile")).unwrap();
        fs::create_dir(top.join("package.json")).unwrap();
        assert_eq!(commands(&top, &top), [""; 0]);
        assert_eq!(commands(&top.join("none"), &top), [""; 0]);
    }
}

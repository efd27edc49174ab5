//! Finds the tests of a project in a commit, without a work tree.

use std::path::Path;

use ralph_core::ecosystem::{LISTED_DIRECTORIES, ProjectFiles, READ_FILES, detect_project};
use ralph_engine::git::{GitError, HostGit};

use super::project_files::{MAX_ENTRIES, MAX_FILE_BYTES};

/// One entry of a tree.
struct CommitEntry<'a> {
    path: &'a str,
    /// The object of a file that is small enough to be read.
    object: Option<&'a str>,
}

/// Returns the preferred test command of a project at a commit, if one is found.
pub(crate) async fn test_command_at(
    repository: &Path,
    commit: &str,
    git: &HostGit,
) -> Result<Option<String>, GitError> {
    let listing = ["ls-tree", "-z", "--long", "--full-tree", commit];
    let top = git.run_as_user(repository, &listing).await?;
    let directories = LISTED_DIRECTORIES.map(|name| format!("{name}/"));
    let mut below = listing.to_vec();
    below.push("--");
    below.extend(directories.iter().map(String::as_str));
    let below = git.run_as_user(repository, &below).await?;
    let entries = parse_entries(&top).chain(parse_entries(&below));
    let entries: Vec<CommitEntry<'_>> = entries.collect();
    let mut files = ProjectFiles::default();
    for entry in &entries {
        files.add_name(entry.path);
    }
    let tests = files.python_tests();
    let wanted: Vec<&CommitEntry<'_>> = entries
        .iter()
        .filter(|entry| {
            READ_FILES.contains(&entry.path) || tests.iter().any(|test| test == entry.path)
        })
        .collect();
    for entry in wanted {
        if let Some(object) = entry.object {
            let reading = ["cat-file", "blob", object];
            let text = git.run_as_user(repository, &reading).await?;
            files.add_text(entry.path, text);
        }
    }
    let found = detect_project(&files).test_commands;
    Ok(found.into_iter().next().map(|test| test.command))
}

/// Returns the entries of lines `mode type object size<tab>path`.
fn parse_entries(listing: &str) -> impl Iterator<Item = CommitEntry<'_>> {
    let lines = listing.split('\0').filter_map(|line| line.split_once('\t'));
    lines.take(MAX_ENTRIES).map(|(facts, path)| CommitEntry {
        path,
        object: readable_object(facts),
    })
}

/// Returns the object of a file. A link counts only by its name.
fn readable_object(facts: &str) -> Option<&str> {
    let mut facts = facts.split_ascii_whitespace();
    let (mode, _, object, size) = (facts.next()?, facts.next()?, facts.next()?, facts.next()?);
    let is_small = ralph_core::parse_value::<u64>(size).is_some_and(|size| size <= MAX_FILE_BYTES);
    (mode.starts_with("100") && is_small).then_some(object)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use ralph_test::git;

    use super::*;

    #[tokio::test]
    async fn tests_are_found_in_a_commit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let host = HostGit::read_only("/usr/local/bin:/usr/bin:/bin", None);
        git(path, &["init", "--quiet"]);
        for (name, text, command) in [
            ("notes.txt", "no tests\n", None),
            ("package.json/none", "a directory\n", None),
            ("Makefile", "test:\n\ttrue\n", Some("make test")),
            (
                "tests/test_a.py",
                "import unittest\n",
                Some("python3 -m unittest discover -s tests"),
            ),
        ] {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            git(path, &["add", "."]);
            git(path, &["commit", "--quiet", "--message", name]);
            // The work tree has no effect.
            fs::write(path.join("go.mod"), "module a\n").unwrap();
            let found = test_command_at(path, "HEAD", &host).await.unwrap();
            assert_eq!(found.as_deref(), command, "{name}");
            fs::remove_file(path.join("go.mod")).unwrap();
        }
        fs::remove_dir_all(path.join("tests")).unwrap();
        fs::remove_file(path.join("Makefile")).unwrap();
        symlink("notes.txt", path.join("Makefile")).unwrap();
        git(path, &["add", "--all"]);
        git(path, &["commit", "--quiet", "--message", "link"]);
        let found = test_command_at(path, "HEAD", &host).await.unwrap();
        assert_eq!(found, None);
        assert!(test_command_at(path, "none", &host).await.is_err());
    }
}

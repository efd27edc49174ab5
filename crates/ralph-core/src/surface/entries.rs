//! Suspicious tree entries: links that lead outside, and nested repositories.

use std::collections::BTreeSet;

use super::touched::SurfaceFinding;

/// An entry that a branch adds or changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Path in the repository, separated by `/`.
    pub path: String,
    pub kind: TreeEntryKind,
}

/// The type of a tree entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEntryKind {
    /// A file.
    File,
    /// A symbolic link with its target.
    Link(String),
    /// A commit of another repository.
    Repository,
}

/// Returns the entries that lead outside the tree or are repositories.
pub fn suspicious_entries(entries: &[TreeEntry]) -> Vec<SurfaceFinding> {
    let suspicious = entries.iter().filter_map(|TreeEntry { path, kind }| {
        let why = match kind {
            TreeEntryKind::Link(target) if leaves_tree(path, target) => {
                format!(
                    "symbolic link out of the tree, to `{}`",
                    shorten_target(target)
                )
            }
            TreeEntryKind::Repository => "nested repository".to_owned(),
            TreeEntryKind::File | TreeEntryKind::Link(_) => return None,
        };
        Some(SurfaceFinding {
            path: path.clone(),
            why,
        })
    });
    suspicious.collect()
}

/// Returns the directories that could be bare repositories, judged by the entries that a branch
/// adds or changes. Git treats a directory with `HEAD`, `objects` and `refs` as a repository and
/// obeys its `config`.
pub fn bare_repository_candidates(entries: &[TreeEntry]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for TreeEntry { path, .. } in entries {
        let parts: Vec<&str> = path.split('/').collect();
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            let is_marker = match *part {
                "HEAD" | "commondir" => is_last,
                "objects" | "refs" => !is_last,
                _ => false,
            };
            if is_marker {
                found.insert(parts[..index].join("/"));
            }
        }
    }
    found
}

/// Returns whether a directory with these names is a bare repository.
pub fn is_bare_repository(names: &BTreeSet<String>) -> bool {
    let has = |name: &str| names.contains(name);
    has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

/// Returns the finding for a bare repository.
pub fn bare_repository_finding(directory: &str) -> SurfaceFinding {
    let path = match directory {
        "" => "./",
        directory => directory,
    };
    SurfaceFinding {
        path: path.to_owned(),
        why: "bare repository, whose configuration git obeys".to_owned(),
    }
}

/// Shortens a target for a list and replaces characters with a special meaning there.
fn shorten_target(target: &str) -> String {
    const MAX_CHARS: usize = 100;
    let is_plain = |c: char| !c.is_control() && !"`<>@|".contains(c);
    let chars = target.chars().take(MAX_CHARS);
    chars.map(|c| if is_plain(c) { c } else { '?' }).collect()
}

/// Returns whether a link leads outside the tree or into the repository's own `.git`.
fn leaves_tree(path: &str, target: &str) -> bool {
    if target.starts_with('/') {
        return true;
    }
    let mut at: Vec<&str> = path.split('/').collect();
    at.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if at.pop().is_none() {
                    return true;
                }
            }
            part => at.push(part),
        }
    }
    at.first()
        .is_some_and(|first| first.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: TreeEntryKind) -> TreeEntry {
        TreeEntry {
            path: path.to_owned(),
            kind,
        }
    }

    #[test]
    fn links_out_of_the_tree_and_nested_repositories_are_found() {
        let link = |path: &str, target: &str| entry(path, TreeEntryKind::Link(target.to_owned()));
        let entries = [
            link("a", "/etc/passwd"),
            link("b/c", "../../x"),
            link("b/d", "../x"),
            link("e", "b/../../x"),
            link("f", ".git/config"),
            link("g", "b/c"),
            entry("vendor/lib", TreeEntryKind::Repository),
            entry("file", TreeEntryKind::File),
        ];
        let found = suspicious_entries(&entries);
        let paths: Vec<&str> = found.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["a", "b/c", "e", "f", "vendor/lib"]);
        assert_eq!(
            found[0].why,
            "symbolic link out of the tree, to `/etc/passwd`"
        );
        assert_eq!(found[4].why, "nested repository");
    }

    #[test]
    fn directories_that_git_treats_as_repositories_are_found() {
        let paths = [
            "x/y/HEAD",
            "x/y/objects/keep",
            "src/objects/a.rs",
            "HEAD.md",
        ];
        let entries = paths.map(|path| entry(path, TreeEntryKind::File));
        let found: Vec<String> = bare_repository_candidates(&entries).into_iter().collect();
        assert_eq!(found, ["src", "x/y"]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert!(is_bare_repository(&names(&[
            "HEAD", "objects", "refs", "config"
        ])));
        assert!(is_bare_repository(&names(&["HEAD", "commondir"])));
        assert!(!is_bare_repository(&names(&["objects", "refs"])));
    }
}

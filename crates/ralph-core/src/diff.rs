//! Counts the files and lines of a unified diff in git's format.

use crate::event::DiffSize;

/// The changes of one file in a diff.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FileDiff {
    /// The path after the change, or before it for a removed file; quoted if git quotes it.
    pub path: String,
    /// Number of added lines.
    pub added: u64,
    /// Number of removed lines.
    pub removed: u64,
    /// Whether git shows no lines because the file is not text.
    pub binary: bool,
}

/// Returns the files of a diff, in its order.
pub fn file_diffs(diff: &[u8]) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    let mut in_hunk = false;
    for line in diff.split(|byte| *byte == b'\n') {
        if let Some(header) = line.strip_prefix(b"diff --git ") {
            in_hunk = false;
            files.push(FileDiff {
                path: path_of_header(header),
                added: 0,
                removed: 0,
                binary: false,
            });
            continue;
        }
        let Some(file) = files.last_mut() else {
            continue;
        };
        if line.starts_with(b"@@ ") {
            in_hunk = true;
        } else if in_hunk {
            file.added += u64::from(line.starts_with(b"+"));
            file.removed += u64::from(line.starts_with(b"-"));
        } else if line.starts_with(b"Binary files ") || line.starts_with(b"GIT binary patch") {
            file.binary = true;
        } else if let Some(path) = named_path(line) {
            file.path = path;
        }
    }
    files
}

/// Returns the size of a diff.
pub fn diff_size(diff: &[u8]) -> DiffSize {
    let mut size = DiffSize::default();
    for file in file_diffs(diff) {
        size.files += 1;
        size.added += file.added;
        size.removed += file.removed;
    }
    size
}

/// Returns the path of a `+++` line, of a `---` line, or of a rename; the last one counts.
fn named_path(line: &[u8]) -> Option<String> {
    let prefixes: [&[u8]; 5] = [
        b"--- a/",
        b"--- \"a/",
        b"+++ b/",
        b"+++ \"b/",
        b"rename to ",
    ];
    let path = prefixes
        .iter()
        .find_map(|prefix| line.strip_prefix(*prefix))?;
    let path = String::from_utf8_lossy(path);
    // Git ends a name that contains spaces with a tab.
    Some(path.trim_end_matches(['\t', '"']).to_owned())
}

/// Returns the path of `a/path b/path`, for a file without lines.
fn path_of_header(header: &[u8]) -> String {
    let text = String::from_utf8_lossy(header);
    let after = text.rsplit_once(" b/").map(|(_, path)| path);
    let after = after.or_else(|| text.rsplit_once(" \"b/").map(|(_, path)| path));
    after.unwrap_or(&text).trim_end_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, added: u64, removed: u64) -> FileDiff {
        FileDiff {
            path: path.into(),
            added,
            removed,
            binary: false,
        }
    }

    #[test]
    fn a_diff_is_measured_by_its_hunks() {
        let diff = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-old\n+new\n+--- more\n same\n\
                     diff --git a/y b/y\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+y\n";
        assert_eq!(file_diffs(diff), [file("x", 2, 1), file("y", 1, 0)]);
        let expected = DiffSize {
            files: 2,
            added: 3,
            removed: 1,
        };
        assert_eq!(diff_size(diff), expected);
        assert_eq!(diff_size(b""), DiffSize::default());
    }

    #[test]
    fn files_without_lines_are_listed_too() {
        let diff = b"diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\n\
                     rename to new name\n\
                     diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n\
                     diff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ\n\
                     diff --git a/gone b/gone\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                     diff --git \"a/\\303\\274\" \"b/\\303\\274\"\nnew file mode 100644\n";
        let binary = FileDiff {
            binary: true,
            ..file("x.png", 0, 0)
        };
        let expected = [
            file("new name", 0, 0),
            file("run.sh", 0, 0),
            binary,
            file("gone", 0, 1),
            file("\\303\\274", 0, 0),
        ];
        assert_eq!(file_diffs(diff), expected);
    }
}

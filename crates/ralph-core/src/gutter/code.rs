//! Summarises the diff of an iteration: a sample of the added lines, the number of lines of the
//! previous iteration that are gone, and whether only the formatting changed. The previous
//! iteration is here the last one that changed something.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::window::IterationWindow;
use crate::id::Digest;

/// The size of the sample of added lines.
const MAX_SAMPLED_LINES: usize = 64;
/// A file with more changed lines than this is treated as generated.
const MAX_HANDWRITTEN_LINES: usize = 4000;
/// Name endings of generated files, which change in every build and do not reflect the work.
const GENERATED_FILES: &[&str] = &[
    ".lock",
    "-lock.json",
    "-lock.yaml",
    "go.sum",
    ".min.js",
    ".min.css",
    ".map",
    ".snap",
    ".pb.go",
    "_pb2.py",
    ".generated.ts",
    ".svg",
    ".csv",
    ".log",
];
const GENERATED_DIRECTORIES: &[&str] = &[
    "dist/",
    "build/",
    "out/",
    "target/",
    "vendor/",
    "node_modules/",
    "generated/",
    "coverage/",
    ".next/",
];

/// A summary of the code changes of an iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeChange {
    /// A sample of the added lines, as short digests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<u32>,
    /// Number of lines in the previous iteration's sample that are gone.
    #[serde(default)]
    pub gone: u32,
    /// Size of the previous iteration's sample.
    #[serde(default)]
    pub of: u32,
    /// Whether only whitespace, quotes, commas, semicolons and parentheses changed since the
    /// previous iteration.
    #[serde(default)]
    pub formatting_only: bool,
    /// A digest of the diff without formatting; empty if only the formatting changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub substance: String,
}

impl CodeChange {
    /// Summarises the diff between the commit at the start of an iteration and the files at its
    /// end. The window ends with the previous iteration.
    pub fn from_diff(diff: &[u8], window: &IterationWindow) -> Self {
        let content = DiffContent::parse(diff);
        let mut written: Vec<u32> = content.added.iter().copied().collect();
        written.truncate(MAX_SAMPLED_LINES);
        let mut code = Self {
            written,
            gone: 0,
            of: 0,
            formatting_only: content.substance.is_empty() && content.has_lines,
            substance: content.substance,
        };
        let mut has_commit = false;
        for facts in window.iter().rev() {
            has_commit |= facts.committed == Some(true);
            let Some(before) = &facts.code else {
                continue;
            };
            let is_gone = |line: &&u32| {
                if has_commit {
                    content.removed.contains(line)
                } else {
                    // Both diffs start at the same commit, so a surviving line is still added.
                    !content.added.contains(line)
                }
            };
            let gone = before.written.iter().filter(is_gone).count();
            code.gone = u32::try_from(gone).unwrap_or(u32::MAX);
            code.of = u32::try_from(before.written.len()).unwrap_or(u32::MAX);
            if !has_commit {
                code.formatting_only = code.substance == before.substance;
            }
            break;
        }
        code
    }

    /// Returns whether at least half of the lines added by the previous iteration are gone.
    pub fn is_rewriting(&self) -> bool {
        self.of > 0 && self.gone * 2 >= self.of
    }
}

#[derive(Default)]
struct DiffContent {
    added: BTreeSet<u32>,
    removed: BTreeSet<u32>,
    has_lines: bool,
    substance: String,
}

#[derive(Default)]
struct FileDiff {
    added: Vec<Vec<u8>>,
    removed: Vec<Vec<u8>>,
    /// The `index` line of a binary file, with the object ids before and after the change.
    binary: Vec<u8>,
}

impl DiffContent {
    fn parse(diff: &[u8]) -> Self {
        let mut content = Self::default();
        let mut substance = Vec::new();
        for (path, file) in split_files(diff) {
            content.has_lines |= !file.added.is_empty() || !file.removed.is_empty();
            let is_generated = is_generated(path.rsplit(" b/").next().unwrap_or(&path))
                || file.added.len() + file.removed.len() > MAX_HANDWRITTEN_LINES;
            let (before, after) = if is_generated {
                (file.removed.concat(), file.added.concat())
            } else {
                content.add_lines(&file);
                (
                    strip_formatting(&file.removed),
                    strip_formatting(&file.added),
                )
            };
            if before != after || !file.binary.is_empty() {
                for part in [path.as_bytes(), &before, &after, &file.binary] {
                    substance.extend_from_slice(part);
                    substance.push(0);
                }
            }
        }
        // A line that only moved is not new.
        let moved: Vec<u32> = content
            .added
            .intersection(&content.removed)
            .copied()
            .collect();
        for line in moved {
            content.added.remove(&line);
            content.removed.remove(&line);
        }
        if !substance.is_empty() {
            let digest = Digest::compute(&substance);
            let name = digest.as_str().rsplit(':').next().unwrap_or_default();
            content.substance = name.chars().take(16).collect();
        }
        content
    }

    fn add_lines(&mut self, file: &FileDiff) {
        self.added
            .extend(file.added.iter().filter_map(|line| line_digest(line)));
        self.removed
            .extend(file.removed.iter().filter_map(|line| line_digest(line)));
    }
}

/// Splits a diff into files and drops context lines.
fn split_files(diff: &[u8]) -> BTreeMap<String, FileDiff> {
    let mut files: BTreeMap<String, FileDiff> = BTreeMap::new();
    let mut current = FileDiff::default();
    let mut path = String::new();
    let mut index: &[u8] = b"";
    let mut in_hunk = false;
    for line in diff.split(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            if !path.is_empty() {
                files.insert(std::mem::take(&mut path), std::mem::take(&mut current));
            }
            path = String::from_utf8_lossy(&line[11..]).into_owned();
            (index, in_hunk) = (b"", false);
        } else if line.starts_with(b"@@ ") {
            in_hunk = true;
        } else if in_hunk && line.starts_with(b"+") {
            current.added.push(line[1..].to_vec());
        } else if in_hunk && line.starts_with(b"-") {
            current.removed.push(line[1..].to_vec());
        } else if line.starts_with(b"index ") {
            index = line;
        } else if !in_hunk && line.starts_with(b"Binary files ") {
            current.binary = index.to_vec();
        }
    }
    if !path.is_empty() {
        files.insert(path, current);
    }
    files
}

/// Recognises generated files by their paths.
pub(super) fn is_generated(path: &str) -> bool {
    GENERATED_FILES.iter().any(|end| path.ends_with(end))
        || GENERATED_DIRECTORIES
            .iter()
            .any(|directory| path.starts_with(directory) || path.contains(&format!("/{directory}")))
}

/// Joins the lines and removes all formatting characters.
fn strip_formatting(lines: &[Vec<u8>]) -> Vec<u8> {
    let is_formatting = |byte: &u8| byte.is_ascii_whitespace() || b"'\"`,;()".contains(byte);
    lines
        .iter()
        .flatten()
        .copied()
        .filter(|byte| !is_formatting(byte))
        .collect()
}

/// Returns a short digest of a line; `None` for trivial lines such as a single bracket.
fn line_digest(line: &[u8]) -> Option<u32> {
    let line = line.trim_ascii();
    let letters = line
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric() || **byte >= 128);
    if letters.take(3).count() < 3 {
        return None;
    }
    // FNV-1a is cheap, and a collision only affects one line of a sample.
    Some(line.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    }))
}

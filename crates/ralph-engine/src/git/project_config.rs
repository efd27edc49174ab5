//! A project's `.agent-loop` directory, read from a commit.
//!
//! It is never read from a work tree: only reviewed files may determine an image.

use std::collections::BTreeMap;
use std::path::Path;

use ralph_core::id::CommitId;
use ralph_core::image::{ProjectConfig, ProjectConfigFile, ProjectConfigFileKind};

use super::program::successful_stdout;
use super::{GitError, HostGit, bounded};

/// The most files in a configuration.
const MAX_FILES: usize = 1000;

/// The most bytes in a configuration.
const MAX_BYTES: u64 = 20 << 20;

/// Why a project's `.agent-loop` directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProjectConfigError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There are too many files.
    #[error("`.agent-loop` has more than {MAX_FILES} files")]
    TooMany,
    /// The files are too large.
    #[error("`.agent-loop` has {bytes} bytes, at most {MAX_BYTES} are read")]
    TooLarge {
        /// The total size.
        bytes: u64,
    },
    /// A file's name is not text.
    #[error("the name `.agent-loop/{path}` is not valid UTF-8")]
    Name {
        /// The name, with invalid bytes replaced.
        path: String,
    },
}

impl ProjectConfigError {
    /// Returns the hint for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Git(error) => error.hint(),
            Self::TooMany | Self::TooLarge { .. } => "keep only the files that the image needs",
            Self::Name { .. } => "give the file another name",
        }
    }
}

/// One file of a tree.
struct ConfigTreeEntry {
    path: String,
    kind: ProjectConfigFileKind,
    object: String,
    size: u64,
}

impl HostGit {
    /// Reads a project's `.agent-loop` directory at a commit. It may be empty.
    pub async fn project_config(
        &self,
        repository: &Path,
        commit: &CommitId,
    ) -> Result<ProjectConfig, ProjectConfigError> {
        let entries = self.config_entries(repository, commit).await?;
        if entries.is_empty() {
            return Ok(ProjectConfig::default());
        }
        let bytes = entries.iter().map(|entry| entry.size).sum();
        if bytes > MAX_BYTES {
            return Err(ProjectConfigError::TooLarge { bytes });
        }
        let contents = self.config_contents(repository, &entries).await?;
        let files: BTreeMap<String, ProjectConfigFile> = entries
            .into_iter()
            .zip(contents)
            .map(|(entry, bytes)| {
                let kind = entry.kind;
                (entry.path, ProjectConfigFile { kind, bytes })
            })
            .collect();
        Ok(ProjectConfig { files })
    }

    async fn config_entries(
        &self,
        repository: &Path,
        commit: &CommitId,
    ) -> Result<Vec<ConfigTreeEntry>, ProjectConfigError> {
        let directory = format!("{}/", ProjectConfig::DIRECTORY);
        let mut listing = self.command_as_user(repository);
        listing
            .args(["ls-tree", "-r", "-z", "--long", "--full-tree"])
            .args([commit.as_str(), "--", &directory]);
        let output = bounded::output(&mut listing, "ls-tree", b"").await?;
        successful_stdout("ls-tree", &output)?;
        let mut entries = Vec::new();
        for line in output.stdout.split(|byte| *byte == 0) {
            if line.is_empty() {
                continue;
            }
            if entries.len() == MAX_FILES {
                return Err(ProjectConfigError::TooMany);
            }
            entries.extend(parse_tree_entry(line, &directory)?);
        }
        Ok(entries)
    }

    /// Returns the contents of files, in order.
    async fn config_contents(
        &self,
        repository: &Path,
        entries: &[ConfigTreeEntry],
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let objects: Vec<&str> = entries.iter().map(|entry| entry.object.as_str()).collect();
        let wanted = objects.join("\n") + "\n";
        let mut reading = self.command_as_user(repository);
        reading.args(["cat-file", "--batch"]);
        let output = bounded::output(&mut reading, "cat-file", wanted.as_bytes()).await?;
        successful_stdout("cat-file", &output)?;
        let mut rest = output.stdout.as_slice();
        entries
            .iter()
            .map(|entry| take_blob(&mut rest, entry))
            .collect::<Option<_>>()
            .ok_or_else(|| GitError::Unexpected {
                command: "cat-file".to_owned(),
                output: "a file does not match its tree entry".to_owned(),
            })
    }
}

/// Parses `mode type object size<tab>path`. A submodule is not a file.
fn parse_tree_entry(
    line: &[u8],
    directory: &str,
) -> Result<Option<ConfigTreeEntry>, ProjectConfigError> {
    let unexpected = || GitError::Unexpected {
        command: "ls-tree".to_owned(),
        output: String::from_utf8_lossy(line).into_owned(),
    };
    let tab = line.iter().position(|byte| *byte == b'\t');
    let (fields, path) = line.split_at(tab.ok_or_else(unexpected)?);
    let path = path[1..]
        .strip_prefix(directory.as_bytes())
        .ok_or_else(unexpected)?;
    let path = std::str::from_utf8(path).map_err(|_| ProjectConfigError::Name {
        path: String::from_utf8_lossy(path).into_owned(),
    })?;
    let fields = String::from_utf8_lossy(fields);
    let mut fields = fields.split_ascii_whitespace();
    let (mode, _, object, size) = (fields.next(), fields.next(), fields.next(), fields.next());
    let kind = match mode {
        Some("100755") => ProjectConfigFileKind::Executable,
        Some("120000") => ProjectConfigFileKind::Link,
        Some("160000") => return Ok(None),
        Some(_) => ProjectConfigFileKind::Regular,
        None => return Err(unexpected().into()),
    };
    Ok(Some(ConfigTreeEntry {
        path: path.to_owned(),
        kind,
        object: object.ok_or_else(unexpected)?.to_owned(),
        size: size
            .ok_or_else(unexpected)?
            .parse()
            .map_err(|_| unexpected())?,
    }))
}

/// Parses one response of `cat-file --batch`: `object type size`, a line break, the bytes, another
/// line break.
fn take_blob(rest: &mut &[u8], entry: &ConfigTreeEntry) -> Option<Vec<u8>> {
    let head = format!("{} blob {}\n", entry.object, entry.size);
    let after = rest.strip_prefix(head.as_bytes())?;
    let Ok(size) = usize::try_from(entry.size) else {
        return None;
    };
    let (bytes, after) = after.split_at_checked(size)?;
    *rest = after.strip_prefix(b"\n")?;
    Some(bytes.to_vec())
}

#[cfg(test)]
mod tests;

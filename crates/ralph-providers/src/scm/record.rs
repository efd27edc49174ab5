//! The file format of a local pull request.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use ralph_core::id::CommitId;
use ralph_core::parse_value;
use ralph_core::ports::{PullDraft, PullRequest, PullState, ScmError};
use serde::{Deserialize, Serialize};

use super::url;

/// Maximum size of a record.
pub(super) const MAX_RECORD_BYTES: usize = 4 * 1024 * 1024;

/// The format version that is written and read.
const VERSION: u32 = 1;

/// A pull request record in the state directory; its file is named after its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullRecord {
    /// The format version.
    pub v: u32,
    /// Counted from 1 in each repository.
    pub number: u64,
    /// The path of the repository, with symbolic links resolved.
    pub repo: String,
    pub run: String,
    /// The branch to merge.
    pub head: String,
    /// The target branch.
    pub base: String,
    /// The head commit of the branch.
    pub commit: CommitId,
    pub title: String,
    /// Markdown.
    pub body: String,
    pub labels: Vec<String>,
    pub state: PullState,
    pub opened_at: jiff::Timestamp,
    pub updated_at: jiff::Timestamp,
}

/// The version field, common to all formats.
#[derive(Deserialize)]
struct RecordVersion {
    v: u32,
}

impl PullRecord {
    /// Creates the record of a new pull request.
    pub(super) fn new(number: u64, repo: &str, draft: &PullDraft, now: jiff::Timestamp) -> Self {
        Self {
            v: VERSION,
            number,
            repo: repo.to_owned(),
            run: draft.run.clone(),
            head: draft.head.clone(),
            base: draft.base.clone(),
            commit: draft.commit.clone(),
            title: draft.title.clone(),
            body: draft.body.clone(),
            labels: draft.labels.clone(),
            state: draft.state,
            opened_at: now,
            updated_at: now,
        }
    }

    /// Returns the record updated from the draft, or `None` if nothing changed.
    pub(super) fn updated(&self, draft: &PullDraft, now: jiff::Timestamp) -> Option<Self> {
        let wanted = Self {
            opened_at: self.opened_at,
            updated_at: self.updated_at,
            // Only another commit opens a pull request again.
            state: if self.state.is_closed() && self.commit == draft.commit {
                self.state
            } else {
                draft.state
            },
            ..Self::new(self.number, &self.repo, draft, now)
        };
        (wanted != *self).then_some(Self {
            updated_at: now,
            ..wanted
        })
    }

    /// Returns whether a draft is for this pull request.
    pub(super) fn matches(&self, draft: &PullDraft) -> bool {
        self.run == draft.run && self.head == draft.head
    }

    /// Converts the record to the port's type.
    pub(super) fn summary(&self, path: &Path) -> PullRequest {
        PullRequest {
            number: self.number,
            url: url::from_path(path),
            state: self.state,
            head: self.commit.clone(),
        }
    }

    /// Serializes the record.
    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        if bytes.len() > MAX_RECORD_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "it has {} bytes, at most {MAX_RECORD_BYTES} are allowed",
                    bytes.len()
                ),
            ));
        }
        Ok(bytes)
    }

    /// Reads a record and checks it against its file's name.
    pub(super) fn read(path: &Path) -> Result<Self, ScmError> {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| {
                file.take(MAX_RECORD_BYTES as u64 + 1)
                    .read_to_end(&mut bytes)
            })
            .map_err(|source| ScmError::Io {
                doing: format!("read pull request record `{}`", path.display()),
                source,
            })?;
        Self::parse(&bytes, record_number(path)).map_err(|why| ScmError::Damaged {
            path: path.display().to_string(),
            why,
        })
    }

    fn parse(bytes: &[u8], number: Option<u64>) -> Result<Self, String> {
        if bytes.len() > MAX_RECORD_BYTES {
            return Err(format!("it has more than {MAX_RECORD_BYTES} bytes"));
        }
        let format: RecordVersion =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if format.v != VERSION {
            return Err(format!(
                "its format version is {}, but only {VERSION} is supported",
                format.v
            ));
        }
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if number != Some(record.number) {
            return Err(format!(
                "its number {} does not match the file name",
                record.number
            ));
        }
        // Deserialization accepts any text as a commit, so its format is checked here.
        if CommitId::parse(record.commit.as_str()).is_none() {
            return Err(format!("`{}` is not a commit id", record.commit));
        }
        Ok(record)
    }
}

/// Returns the number in a record's file name.
pub(super) fn record_number(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let number: u64 = parse_value(digits)?;
    // One number has one name: no `+1`, no `01`.
    (number.to_string() == digits).then_some(number)
}

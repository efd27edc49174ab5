//! One pull request of the local host, as it is written in a file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use ralph_core::id::CommitId;
use ralph_core::parse_value;
use ralph_core::ports::{PullDraft, PullRequest, PullState, ScmError};
use serde::{Deserialize, Serialize};

use super::url;

/// The largest record that is written or read.
pub(super) const MAX_RECORD_BYTES: usize = 4 * 1024 * 1024;

/// The format that this program writes and reads.
const VERSION: u32 = 1;

/// A pull request in a file of the state directory, named after its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullRecord {
    /// The format of the record.
    pub v: u32,
    /// The number, counted from 1 in each repository.
    pub number: u64,
    /// The path of the repository, free of symbolic links.
    pub repo: String,
    /// The run that opened it.
    pub run: String,
    /// The branch with the work.
    pub head: String,
    /// The branch it should go into.
    pub base: String,
    /// The commit the branch stands at.
    pub commit: CommitId,
    /// The title.
    pub title: String,
    /// The body, in Markdown.
    pub body: String,
    /// The labels.
    pub labels: Vec<String>,
    /// Whether it is a draft.
    pub state: PullState,
    /// When it was opened.
    pub opened_at: jiff::Timestamp,
    /// When it was last changed.
    pub updated_at: jiff::Timestamp,
}

/// The part of every format that says which one it is.
#[derive(Deserialize)]
struct RecordVersion {
    v: u32,
}

impl PullRecord {
    /// Makes the record of a pull request that is opened now.
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

    /// Returns the record as the draft wants it, or nothing if that is what it says already.
    pub(super) fn updated(&self, draft: &PullDraft, now: jiff::Timestamp) -> Option<Self> {
        let wanted = Self {
            opened_at: self.opened_at,
            updated_at: self.updated_at,
            ..Self::new(self.number, &self.repo, draft, now)
        };
        (wanted != *self).then_some(Self {
            updated_at: now,
            ..wanted
        })
    }

    /// Returns whether a draft is about this pull request.
    pub(super) fn matches(&self, draft: &PullDraft) -> bool {
        self.run == draft.run && self.head == draft.head
    }

    /// Returns what the rest of the program knows of a pull request.
    pub(super) fn summary(&self, path: &Path) -> PullRequest {
        PullRequest {
            number: self.number,
            url: url::from_path(path),
            state: self.state,
            head: self.commit.clone(),
        }
    }

    /// Returns the bytes of the file.
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
            return Err(format!("its format is {}, known is {VERSION}", format.v));
        }
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if number != Some(record.number) {
            return Err(format!(
                "its number is {}, which is not the file's name",
                record.number
            ));
        }
        // Reading takes any text for a commit, so the shape is checked here.
        if CommitId::parse(record.commit.as_str()).is_none() {
            return Err(format!("`{}` is not a commit id", record.commit));
        }
        Ok(record)
    }
}

/// Returns the number that a file's name gives it, if it is a record's name.
pub(super) fn record_number(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let number: u64 = parse_value(digits)?;
    // One number has one name: no `+1`, no `01`.
    (number.to_string() == digits).then_some(number)
}

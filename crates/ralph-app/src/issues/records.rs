//! The records of issues in the state directory: which run works on an issue, and its last known text.

use std::path::{Path, PathBuf};

use ralph_core::id::{Digest, RunId};
use ralph_core::repo_address::RemoteRepo;
use ralph_core::spec::SpecRecord;
use ralph_engine::durable;
use ralph_engine::store::StateDir;
use serde::{Deserialize, Serialize};

use crate::error::AppError;

/// The version of the format.
const VERSION: u32 = 1;

/// The digits of the digest in a directory's name.
const DIGEST_CHARS: usize = 16;

/// The record of an issue that this machine has worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IssueRecord {
    pub(super) version: u32,
    pub(super) issue: u64,
    /// The last run.
    pub(super) run: RunId,
    #[serde(flatten)]
    pub(super) spec: SpecRecord,
}

impl IssueRecord {
    pub(super) fn new(issue: u64, run: RunId, body: &str) -> Self {
        Self {
            version: VERSION,
            issue,
            run,
            spec: SpecRecord::new(body),
        }
    }
}

/// The records of one repository.
#[derive(Debug, Clone)]
pub(super) struct IssueRecords {
    directory: PathBuf,
}

impl IssueRecords {
    pub(super) fn new(state: &StateDir, repository: &RemoteRepo) -> Self {
        let name = format!("{}/{}", repository.host(), repository.full_name()).to_lowercase();
        let digest = Digest::compute(name.as_bytes());
        Self {
            directory: state.issues().join(&digest.as_str()[..DIGEST_CHARS]),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, issue: u64) -> PathBuf {
        self.directory.join(format!("{issue}.json"))
    }

    /// Returns the directory of the task files.
    pub(super) fn tasks(&self) -> PathBuf {
        self.directory.join("tasks")
    }

    /// Returns the record of an issue, if there is one.
    pub(super) fn load(&self, issue: u64) -> Result<Option<IssueRecord>, AppError> {
        let path = self.path(issue);
        let Some(bytes) = durable::read_if_present(&path)? else {
            return Ok(None);
        };
        let damaged = |why: String| {
            AppError::runtime(
                format!("the record of issue #{issue} cannot be used"),
                why,
                format!("remove `{}` to start over", path.display()),
            )
        };
        let record: IssueRecord =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if record.version != VERSION {
            return Err(damaged(format!("its version is {}", record.version)));
        }
        Ok(Some(record))
    }

    /// Stores a record.
    pub(super) fn store(&self, record: &IssueRecord) -> Result<(), AppError> {
        durable::create_dir(&self.directory)?;
        let text = serde_json::to_vec_pretty(record).map_err(|error| {
            AppError::runtime("cannot store the record of an issue", error.to_string(), "")
        })?;
        durable::write_shared(&self.path(record.issue), &text)?;
        Ok(())
    }
}

//! The claims of this machine: stored before the labels change, so that a crash loses none.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use ralph_core::id::RunId;
use ralph_engine::durable::{self, StoreError};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::records::IssueRecords;
use crate::error::AppError;
use crate::planning::random_number;

/// The version of the format.
const VERSION: u32 = 1;

/// The text before the nonce of a claim in the comment with the status.
const MARKER: &str = "Claim `";

/// The claim of this machine on an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClaimRecord {
    version: u32,
    /// Distinguishes the claim from those of other machines.
    pub(super) nonce: String,
    /// The nonce in the comment with the status before the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// The run that the claim is for; `None` until it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<RunId>,
}

impl ClaimRecord {
    /// Creates the claim of an issue whose status comment has this text.
    pub(super) fn new(comment: Option<&str>, run: Option<RunId>) -> Self {
        Self {
            version: VERSION,
            nonce: format!("{:016x}", random_number()),
            before: comment.and_then(claim_in).map(str::to_owned),
            run,
        }
    }

    /// Returns the sentence that the comment with the status contains while the claim is valid.
    pub(super) fn sentence(&self) -> String {
        format!("{MARKER}{}`.", self.nonce)
    }

    /// Returns whether the text of the status comment names no claim that came after this one.
    pub(super) fn is_current(&self, comment: Option<&str>) -> bool {
        let named = comment.and_then(claim_in);
        named.is_none_or(|named| named == self.nonce || Some(named) == self.before.as_deref())
    }
}

fn claim_in(comment: &str) -> Option<&str> {
    let (_, rest) = comment.rsplit_once(MARKER)?;
    rest.split_once('`').map(|(nonce, _)| nonce)
}

/// The lock of the process that works on an issue. Its end releases it.
#[derive(Debug)]
pub(super) struct IssueLock {
    file: File,
}

impl Drop for IssueLock {
    /// Unlocks explicitly: a child process that another thread is starting still has a copy of the file.
    fn drop(&mut self) {
        if let Err(error) = rustix::fs::flock(&self.file, FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot unlock an issue");
        }
    }
}

impl IssueRecords {
    fn claim_path(&self, issue: u64) -> PathBuf {
        self.directory().join(format!("{issue}.claim.json"))
    }

    /// Locks an issue on this machine. Returns `None` if another process works on it.
    pub(super) fn lock(&self, issue: u64) -> Result<Option<IssueLock>, AppError> {
        durable::create_dir(self.directory())?;
        let path = self.directory().join(format!("{issue}.lock"));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::when("open", &path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(IssueLock { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(StoreError::when("lock", &path)(error.into()).into()),
        }
    }

    /// Returns the claim of this machine, if there is one.
    pub(super) fn load_claim(&self, issue: u64) -> Result<Option<ClaimRecord>, AppError> {
        let path = self.claim_path(issue);
        let Some(bytes) = durable::read_if_present(&path)? else {
            return Ok(None);
        };
        let claim =
            serde_json::from_slice::<ClaimRecord>(&bytes).map_err(|error| error.to_string());
        let checked = claim.and_then(|claim| match claim.version {
            VERSION => Ok(claim),
            version => Err(format!("its version is {version}")),
        });
        checked.map(Some).map_err(|why| {
            AppError::runtime(
                format!("the claim of issue #{issue} cannot be used"),
                why,
                format!("remove `{}` to start over", path.display()),
            )
        })
    }

    /// Stores a claim.
    pub(super) fn store_claim(&self, issue: u64, claim: &ClaimRecord) -> Result<(), AppError> {
        durable::create_dir(self.directory())?;
        let text = serde_json::to_vec_pretty(claim).map_err(|error| {
            AppError::runtime("cannot store the claim of an issue", error.to_string(), "")
        })?;
        durable::write_shared(&self.claim_path(issue), &text)?;
        Ok(())
    }

    /// Records the run of the claim, if this machine has one.
    pub(super) fn assign_run(&self, issue: u64, run: &RunId) -> Result<(), AppError> {
        let Some(mut claim) = self.load_claim(issue)? else {
            return Ok(());
        };
        claim.run = Some(run.clone());
        self.store_claim(issue, &claim)
    }

    /// Removes a claim that has ended. A crash before it is harmless: the comment with the status tells a later
    /// claim apart.
    pub(super) fn remove_claim(&self, issue: u64) -> Result<(), AppError> {
        let path = self.claim_path(issue);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::when("remove", &path)(error).into())
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ClaimRecord;

    #[test]
    fn a_later_claim_in_the_comment_ends_an_earlier_one() {
        let other = ClaimRecord::new(None, None).sentence();
        let stale = format!("**In progress**: {other}");
        let claim = ClaimRecord::new(Some(&stale), None);
        let own = format!("**In progress**: {}", claim.sentence());
        for (comment, is_current) in [
            (None, true),
            (Some("**Ready**"), true),
            (Some(stale.as_str()), true),
            (Some(&own), true),
            (Some("x Claim `0000`."), false),
        ] {
            assert_eq!(claim.is_current(comment), is_current, "{comment:?}");
        }
    }
}

//! The user's approvals of a repository's proposals: one file per repository in the state
//! directory.

use std::io;
use std::path::{Path, PathBuf};

use ralph_core::id::Digest;
use ralph_core::trust::{ApprovedProposal, TrustProposal};
use ralph_engine::durable::{self, StoreError};
use serde::{Deserialize, Serialize};

use super::regular_file::read_regular;

/// The name of the directory in the state directory.
const TRUST_DIR: &str = "trust";

/// The version of the file format.
const VERSION: u32 = 1;

/// The size limit of a file, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The approvals of one repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRecord {
    version: u32,
    /// The root of the repository, with symbolic links resolved.
    pub repository: String,
    /// The URL of the repository's remote `origin`, if it has one.
    pub origin: Option<String>,
    pub approved: Vec<ApprovedProposal>,
}

/// The user's approvals of one repository's proposals.
#[derive(Debug, Clone)]
pub struct Approvals {
    path: Option<PathBuf>,
    record: ApprovalRecord,
}

impl Approvals {
    /// Reads the approvals of a repository. Without a state directory or with an unreadable file,
    /// nothing is approved. A repository with another origin at the same path counts as another
    /// repository.
    pub fn load(state: Option<&Path>, root: &Path) -> Self {
        let repository = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let origin = origin_url(&repository);
        let repository = repository.to_string_lossy().into_owned();
        let path = state.map(|state| {
            let digest = Digest::compute(repository.as_bytes()).to_string();
            let name = digest.rsplit(':').next().unwrap_or_default().to_owned();
            state.join(TRUST_DIR).join(format!("{name}.json"))
        });
        let stored = path.as_deref().and_then(read_record);
        let approved = stored
            .filter(|stored| stored.repository == repository && stored.origin == origin)
            .map(|stored| stored.approved);
        Self {
            path,
            record: ApprovalRecord {
                version: VERSION,
                repository,
                origin,
                approved: approved.unwrap_or_default(),
            },
        }
    }

    /// Reads the approvals of all repositories, ordered by path.
    pub fn load_all(state: &Path) -> Result<Vec<ApprovalRecord>, StoreError> {
        let directory = state.join(TRUST_DIR);
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::when("read", &directory)(error)),
        };
        let mut records: Vec<ApprovalRecord> = Vec::new();
        for entry in entries {
            let entry = entry.map_err(StoreError::when("read", &directory))?;
            records.extend(read_record(&entry.path()));
        }
        records.sort_by(|a, b| a.repository.cmp(&b.repository));
        Ok(records)
    }

    /// Returns the root of the repository.
    pub fn repository(&self) -> &str {
        &self.record.repository
    }

    /// Returns the approved proposals.
    pub fn approved(&self) -> &[ApprovedProposal] {
        &self.record.approved
    }

    /// Returns whether the user approved exactly this value.
    pub fn covers(&self, proposal: &TrustProposal) -> bool {
        self.record.approved.contains(&proposal.approved())
    }

    /// Returns the earlier approved values of the same key.
    pub fn earlier_values(&self, proposal: &TrustProposal) -> Vec<&str> {
        let same_key = |old: &&ApprovedProposal| {
            old.file == proposal.file && old.key == proposal.key && old.value != proposal.value
        };
        let earlier = self.record.approved.iter().filter(same_key);
        earlier.map(|old| old.value.as_str()).collect()
    }

    /// Approves these proposals and revokes approvals of other values of the same keys: a file that
    /// returns to an older content is shown again.
    pub fn approve(&mut self, proposals: &[TrustProposal]) -> Result<(), StoreError> {
        let is_superseded = |old: &ApprovedProposal| {
            let mut same = proposals
                .iter()
                .filter(|new| new.file == old.file && new.key == old.key);
            same.clone().next().is_some() && !same.any(|new| new.approved() == *old)
        };
        self.record.approved.retain(|old| !is_superseded(old));
        self.add(proposals)
    }

    /// Approves these proposals and preserves all earlier approvals.
    pub fn add(&mut self, proposals: &[TrustProposal]) -> Result<(), StoreError> {
        for proposal in proposals {
            if !self.covers(proposal) {
                self.record.approved.push(proposal.approved());
            }
        }
        self.write()
    }

    /// Revokes all approvals of the repository. Returns their number.
    pub fn revoke(&mut self) -> Result<usize, StoreError> {
        let count = self.record.approved.len();
        self.record.approved.clear();
        if count > 0 {
            self.write()?;
        }
        Ok(count)
    }

    fn write(&self) -> Result<(), StoreError> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        path.parent().map_or(Ok(()), durable::create_dir)?;
        let text = serde_json::to_string_pretty(&self.record)
            .map_err(io::Error::from)
            .map_err(StoreError::when("write", path))?;
        durable::write_shared(path, format!("{text}\n").as_bytes())
    }
}

/// Reads the file of a repository. A damaged file is logged and approves nothing.
fn read_record(path: &Path) -> Option<ApprovalRecord> {
    let file = match read_regular(path, path.parent()?, MAX_BYTES) {
        Ok(file) => file,
        Err(error) if error.is_missing() => return None,
        Err(error) => {
            tracing::warn!(%error, "cannot read the approvals in `{}`", path.display());
            return None;
        }
    };
    match serde_json::from_slice::<ApprovalRecord>(&file.bytes) {
        Ok(record) => (record.version == VERSION).then_some(record),
        Err(error) => {
            tracing::warn!(%error, "cannot use the approvals in `{}`", path.display());
            None
        }
    }
}

/// Returns the URL of the remote `origin` from the repository's configuration.
fn origin_url(repository: &Path) -> Option<String> {
    let config = repository.join(".git/config");
    let file = match read_regular(&config, repository, MAX_BYTES) {
        Ok(file) => file,
        Err(error) => {
            // A linked work tree and a plain directory have no such file.
            tracing::debug!(%error, "no origin is known for `{}`", repository.display());
            return None;
        }
    };
    let text = String::from_utf8_lossy(&file.bytes).into_owned();
    let mut lines = text
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[remote \"origin\"]")
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    lines.find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "url").then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ralph_core::trust::{TrustFile, rule};

    use super::*;

    fn proposal(value: &str) -> TrustProposal {
        let key = "sandbox.network.allowed";
        let rule = rule(TrustFile::Settings, key, None).unwrap();
        TrustProposal::new("ralph.toml", key, value, rule)
    }

    #[test]
    fn an_approval_is_for_one_content_of_one_repository() {
        let directory = tempfile::tempdir().unwrap();
        let (state, one) = (directory.path().join("state"), directory.path().join("one"));
        fs::create_dir_all(one.join(".git")).unwrap();
        let load = |root: &Path| Approvals::load(Some(&state), root);
        let mut approvals = load(&one);
        assert!(!approvals.covers(&proposal("a")));
        approvals.approve(&[proposal("a"), proposal("b")]).unwrap();
        assert!(load(&one).covers(&proposal("a")) && load(&one).covers(&proposal("b")));
        assert!(!load(directory.path()).covers(&proposal("a")));
        approvals.approve(&[proposal("c")]).unwrap();
        assert!(load(&one).covers(&proposal("c")));
        assert!(!load(&one).covers(&proposal("a")), "it was superseded");
        assert_eq!(load(&one).earlier_values(&proposal("d")), ["c"]);
        approvals.add(&[proposal("d")]).unwrap();
        assert!(load(&one).covers(&proposal("c")) && load(&one).covers(&proposal("d")));
        assert_eq!(Approvals::load_all(&state).unwrap().len(), 1);
        let clone = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = /elsewhere\n";
        fs::write(one.join(".git/config"), clone).unwrap();
        assert!(!load(&one).covers(&proposal("c")), "another origin");
        fs::remove_file(one.join(".git/config")).unwrap();
        assert_eq!(load(&one).revoke().unwrap(), 2);
        assert!(!load(&one).covers(&proposal("c")));
    }
}

//! The source hosts that the user named on the command line, as opposed to those of a repository's
//! files. Credentials without an address of their own may be sent there.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use ralph_core::repo_address::{RemoteRepo, RepoAddress};

/// The source hosts that the user named on the command line.
#[derive(Debug, Default)]
pub struct TypedHosts(Mutex<BTreeSet<String>>);

impl TypedHosts {
    /// Adds the host of an address that the user typed.
    pub fn add(&self, address: &RepoAddress) {
        if let RepoAddress::Remote(repo) = address {
            let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            hosts.insert(repo.authority());
        }
    }

    /// Returns whether the user named the host of a repository.
    pub(crate) fn contains(&self, repo: &RemoteRepo) -> bool {
        let hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.contains(&repo.authority())
    }
}

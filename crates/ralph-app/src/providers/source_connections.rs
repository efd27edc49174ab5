//! The repositories on source hosts that this process has contacted.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ralph_core::id::CommitId;
use ralph_core::ports::{IssueTracker, Scm};
use ralph_core::repo_address::RemoteRepo;
use ralph_engine::git::RemoteTransport;
use ralph_providers::scm::github::TokenPace;

use crate::error::AppError;

/// A repository on a source host, as this process reaches it.
#[derive(Clone)]
pub struct SourceConnection {
    pub repo: RemoteRepo,
    /// Without a credential, its operations return the reason.
    pub scm: Arc<dyn Scm>,
    /// The issues, or the reason why there is no access to them.
    pub issues: Result<Arc<dyn IssueTracker>, AppError>,
    pub transport: RemoteTransport,
    /// The kind and the source of the credential, or the reason why there is none.
    pub credential: Result<String, AppError>,
    /// Whether the role of a user limits the credential. The role of an App is always none.
    pub has_role: bool,
}

impl fmt::Debug for SourceConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceConnection")
            .field("repo", &self.repo)
            .field("credential", &self.credential)
            .finish_non_exhaustive()
    }
}

impl SourceConnection {
    /// Returns git's access without a credential, which suffices to read a public repository.
    pub(crate) fn anonymous_transport(&self) -> RemoteTransport {
        RemoteTransport {
            credential: None,
            ..self.transport.clone()
        }
    }
}

/// The starting point of a run in a repository on a source host.
#[derive(Debug, Clone)]
pub struct RemoteSource {
    /// Under its current name.
    pub repo: RemoteRepo,
    /// Name of the source host.
    pub scm: &'static str,
    /// The kind and the source of the credential, if there is one.
    pub credential: Option<String>,
    /// The repository in the state directory that has the objects of the base commit.
    pub mirror: PathBuf,
    pub base_branch: String,
    pub base: CommitId,
    /// The branches whose names start with the name of the task's branch.
    pub taken: Vec<String>,
    /// The reasons why a run cannot start.
    pub problems: Vec<AppError>,
    /// Facts that the user should know.
    pub notices: Vec<String>,
}

/// The connections and starting points of this process.
#[derive(Debug, Default)]
pub struct SourceConnections {
    open: Mutex<BTreeMap<String, SourceConnection>>,
    /// The pace of requests that change something on a host.
    pub(crate) pace: TokenPace,
    /// The starting points by the search that found them: planning, its checks and the review of
    /// proposals use the same commit, and contact the host only once.
    pub(crate) found: tokio::sync::Mutex<BTreeMap<String, RemoteSource>>,
}

impl SourceConnections {
    /// Returns no connections yet, which share the pace with these.
    pub(crate) fn with_same_pace(&self) -> Self {
        Self {
            pace: self.pace.clone(),
            ..Self::default()
        }
    }

    /// Returns the connection to a repository, if it was opened.
    pub(crate) fn get(&self, repo: &RemoteRepo) -> Option<SourceConnection> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&repo.to_string()).cloned()
    }

    /// Adds a connection.
    pub(crate) fn insert(&self, connection: SourceConnection) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(connection.repo.to_string(), connection);
    }
}

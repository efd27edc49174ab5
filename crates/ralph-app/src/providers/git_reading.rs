//! Read access of a run's commands to its repository on a source host, and to its submodules. The gate adds the
//! credential, so the sandbox has none.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use ralph_core::plan::RunPlan;
use ralph_core::ports::GitCredential;
use ralph_core::repo_address::RemoteRepo;
use ralph_core::submodule::{Submodule, redirected_git};
use ralph_gate::{Route, RouteError};

use super::SourceConnections;

/// The variable with which git in a sandbox learns the address of the gate. It is not stored, because each
/// process that works on a run has another token.
const GIT_VARIABLE: &str = "GIT_CONFIG_PARAMETERS";

/// The repositories that commands may read, with the credential for them.
pub(super) struct GitReading {
    repo: RemoteRepo,
    submodules: Vec<Submodule>,
    credential: Arc<dyn GitCredential>,
}

impl GitReading {
    /// Returns the repositories of a plan; `None` for one on this machine, and without a connection that has
    /// a credential.
    pub(super) fn of_plan(plan: &RunPlan, connections: &SourceConnections) -> Option<Self> {
        let repo = plan.remote_repository()?;
        let credential = connections.get(&repo)?.scm.git_credential()?;
        Some(Self {
            repo,
            submodules: plan.submodules.clone(),
            credential,
        })
    }

    /// Returns the route of the gate.
    pub(super) fn route(&self) -> Result<Route, RouteError> {
        let submodules = self.submodules.iter();
        let submodules = submodules.filter_map(|submodule| submodule.repository(&self.repo));
        let repositories: Vec<RemoteRepo> = std::iter::once(self.repo.clone())
            .chain(submodules)
            .collect();
        Route::git(&repositories, self.credential.clone())
    }

    /// Returns whether the host can be at a private address.
    pub(super) fn may_be_private(&self) -> bool {
        !self.repo.is_on_github_com()
    }

    /// Returns the variables with which commands use a route of the gate at an address.
    pub(super) fn environment(
        &self,
        route: &Route,
        address: SocketAddr,
    ) -> BTreeMap<String, String> {
        let token = route.placeholder().as_str();
        let base = route.base_url(address);
        let base = base.replacen("http://", &format!("http://ralph:{token}@"), 1);
        let rules = redirected_git(&self.repo, &self.submodules, &base);
        BTreeMap::from([(GIT_VARIABLE.to_owned(), rules)])
    }
}

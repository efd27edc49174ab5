//! The remote `origin` of the repository in a sandbox. Its commands read it through the gate.

use ralph_core::plan::RunPlan;

/// The remote `origin` of a sandbox's repository. Its addresses contain no credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteOrigin {
    pub url: String,
    /// The names and the addresses of the submodules that can be read.
    pub submodules: Vec<(String, String)>,
}

impl RemoteOrigin {
    /// Returns the origin of a plan's repository; `None` for one on this machine.
    pub fn of_plan(plan: &RunPlan) -> Option<Self> {
        let repo = plan.remote_repository()?;
        let submodules = plan.submodules.iter().filter_map(|submodule| {
            let url = submodule.repository(&repo)?.git_url();
            Some((submodule.name.clone(), url))
        });
        Some(Self {
            url: repo.git_url(),
            submodules: submodules.collect(),
        })
    }

    /// Returns the arguments of the script that configures it.
    pub(super) fn arguments(&self) -> Vec<String> {
        let submodules = self.submodules.iter();
        let pairs = submodules.flat_map(|(name, url)| [name.clone(), url.clone()]);
        std::iter::once(self.url.clone()).chain(pairs).collect()
    }
}

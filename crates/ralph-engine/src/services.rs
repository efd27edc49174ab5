//! The services a run depends on: sandboxes, model, agent, gate, source host, git, clock.

use std::sync::Arc;

use ralph_core::outage::OutagePolicy;
use ralph_core::ports::{Agent, Clock, GateControl, Model, SandboxProvider, Scm};
use ralph_core::price::Price;
use ralph_core::profile::ModelChoice;
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;

use crate::git::HostGit;

/// The services of a run, chosen by the program.
#[derive(Clone)]
pub struct Services {
    /// The provider of sandboxes.
    pub sandboxes: Arc<dyn SandboxProvider>,
    /// The model that is asked.
    pub model: Arc<dyn Model>,
    /// The program that works instead of the model, if any.
    pub agent: Option<Arc<dyn Agent>>,
    /// The gate between the sandbox and the network, if any.
    pub gate: Option<Arc<dyn GateControl>>,
    /// The price of a model call.
    pub price: Price,
    /// How long a run waits for a provider that is not available.
    pub outage: OutagePolicy,
    /// The other models that the run can switch to.
    pub profiles: ProfileSelector,
    /// The source host, which receives branches and pull requests.
    pub scm: Arc<dyn Scm>,
    /// Git on the host.
    pub git: HostGit,
    /// The clock of timestamps and timeouts.
    pub clock: Arc<dyn Clock>,
    /// Removes secrets from everything that is written.
    pub redactor: Redactor,
}

/// Makes the model of a profile; the error says why it cannot be used.
pub type ChooseModel = dyn Fn(&str) -> Result<ChosenModel, String> + Send + Sync;

/// The model profiles that a run can switch to.
#[derive(Clone)]
pub struct ProfileSelector {
    /// The profile that is marked for the doctor.
    pub doctor: Option<String>,
    /// Makes the model of a profile.
    pub choose: Arc<ChooseModel>,
}

impl Services {
    /// Says why no other profile can do the work, if that is so.
    pub(crate) fn check_profile_switch(state: &RunState) -> Result<(), String> {
        match &state.plan.agent {
            Some(_) => Err("an agent does the work, and it asks a model of its own".into()),
            None => Ok(()),
        }
    }

    /// Returns the model of a profile that the ladder or the doctor wants; the error says why it
    /// cannot be used.
    pub(crate) fn model_for_profile(
        &self,
        profile: &str,
        state: &RunState,
    ) -> Result<ChosenModel, String> {
        let choice = state.model_choice();
        if choice.overrides_all_profiles() {
            return Ok(ChosenModel {
                choice,
                model: self.model.clone(),
                price: self.price,
            });
        }
        (self.profiles.choose)(profile)
    }
}

/// A model that is ready to be asked.
#[derive(Clone)]
pub struct ChosenModel {
    /// How it was chosen; this is recorded.
    pub choice: ModelChoice,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The price of a model call.
    pub price: Price,
}

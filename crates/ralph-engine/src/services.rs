//! The services a run depends on: sandboxes, model, agent, gate, source host, git, clock.

use std::sync::Arc;

use ralph_core::outage::OutagePolicy;
use ralph_core::ports::{Agent, Clock, GateControl, Model, SandboxProvider, Scm};
use ralph_core::price::Price;
use ralph_core::profile::ModelChoice;
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;

use crate::git::HostGit;

/// The outside of a run, chosen by the program.
#[derive(Clone)]
pub struct Services {
    /// Where commands run.
    pub sandboxes: Arc<dyn SandboxProvider>,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// The program that does the work instead, where one does.
    pub agent: Option<Arc<dyn Agent>>,
    /// Who keeps the door out of the sandbox, where there is one.
    pub gate: Option<Arc<dyn GateControl>>,
    /// What an answer costs.
    pub price: Price,
    /// How long a run waits for a provider that is not available.
    pub outage: OutagePolicy,
    /// Who else could answer.
    pub profiles: ProfileSelector,
    /// Where branches and pull requests go.
    pub scm: Arc<dyn Scm>,
    /// Git on the host.
    pub git: HostGit,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What must never be written down.
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
    /// What an answer costs.
    pub price: Price,
}

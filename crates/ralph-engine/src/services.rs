//! The services a run depends on: sandboxes, model, agent, gate, source host, git, clock.

use std::sync::Arc;

use ralph_core::doctor;
use ralph_core::outage::OutagePolicy;
use ralph_core::ports::{Agent, Clock, GateControl, Model, SandboxProvider, Scm};
use ralph_core::price::Price;
use ralph_core::profile::ModelChoice;
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;
use ralph_core::task::Contract;

use crate::git::HostGit;
use crate::worker_pool::WorkerSlot;

/// The services of a run, chosen by the program.
#[derive(Clone)]
pub struct Services {
    pub sandboxes: Arc<dyn SandboxProvider>,
    pub model: Arc<dyn Model>,
    /// The program that works instead of the model, if any.
    pub agent: Option<Arc<dyn Agent>>,
    /// The program that replaces the agent.
    pub fallback_agent: Option<Arc<dyn Agent>>,
    /// The gate between the sandbox and the network, if any.
    pub gate: Option<Arc<dyn GateControl>>,
    pub price: Price,
    /// How long a run waits for a provider that is not available.
    pub outage: OutagePolicy,
    /// The other models that the run can switch to.
    pub profiles: ProfileSelector,
    /// The source host, which receives branches and pull requests.
    pub scm: Arc<dyn Scm>,
    pub git: HostGit,
    pub clock: Arc<dyn Clock>,
    /// Removes secrets from everything that is written.
    pub redactor: Redactor,
    /// The run's place among the runs of this process, if their number is limited.
    pub worker: Option<Arc<WorkerSlot>>,
}

/// Creates the model of a profile; the error is the reason why it cannot be used.
pub type ChooseModel = dyn Fn(&str) -> Result<ChosenModel, String> + Send + Sync;

/// The model profiles that a run can switch to.
#[derive(Clone)]
pub struct ProfileSelector {
    /// The profile that is marked for the doctor.
    pub doctor: Option<String>,
    /// The profile to switch to if the task names none.
    pub fallback: Option<String>,
    pub choose: Arc<ChooseModel>,
}

impl Services {
    /// Returns an error with the reason if no other profile can do the work.
    pub(crate) fn check_profile_switch(state: &RunState) -> Result<(), String> {
        match &state.plan.agent {
            Some(_) => Err("an agent does the work, and it calls its own model".into()),
            None => Ok(()),
        }
    }

    /// Returns the agent that works in the next session; `None` if a model does the work.
    pub(crate) fn agent_in_force(&self, state: &RunState) -> Option<&Arc<dyn Agent>> {
        match (&self.fallback_agent, state.fallback_agent_since()) {
            (Some(fallback), Some(_)) => Some(fallback),
            (_, _) => self.agent.as_ref(),
        }
    }

    /// Returns the profile to switch to when the run circles: the task's, or else the user's.
    pub(crate) fn fallback_profile<'a>(&'a self, contract: &'a Contract) -> Option<&'a str> {
        let task_profile = contract.model_profile_fallback.as_deref();
        task_profile.or(self.profiles.fallback.as_deref())
    }

    /// Returns the profile that answers for the doctor: the task's, the one marked for it, or the
    /// fallback. Without one, the run's own model answers.
    pub(crate) fn doctor_profile<'a>(&'a self, contract: &'a Contract) -> Option<&'a str> {
        doctor::select_profile(
            contract.doctor_profile.as_deref(),
            self.profiles.doctor.as_deref(),
            self.fallback_profile(contract),
        )
    }

    /// Returns an error with the reason if no model can answer for the doctor: the model of an agent
    /// works only for the agent.
    pub(crate) fn check_doctor(&self, contract: &Contract, state: &RunState) -> Result<(), String> {
        let Some(agent) = &state.plan.agent else {
            return Ok(());
        };
        let name = &agent.name;
        let Some(profile) = self.doctor_profile(contract) else {
            return Err(format!(
                "no model can answer: the model of `{name}` works only for the agent, and no profile is \
                 configured for the doctor"
            ));
        };
        match self.model_for_profile(profile, state) {
            Ok(_) => Ok(()),
            Err(why) => Err(format!(
                "no model can answer: profile `{profile}` cannot be used: {why}"
            )),
        }
    }

    /// Returns the model of a profile that the ladder or the doctor requests; the error is the
    /// reason why it cannot be used.
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

/// A model that is ready for requests.
#[derive(Clone)]
pub struct ChosenModel {
    /// Recorded in the journal.
    pub choice: ModelChoice,
    pub model: Arc<dyn Model>,
    pub price: Price,
}

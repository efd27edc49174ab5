//! The model in use.

use super::{FallbackAgentUse, RunState};
use crate::plan::AgentPlan;
use crate::profile::ModelChoice;

impl RunState {
    pub(super) fn choose_model(&mut self, choice: &ModelChoice) {
        self.profile.clone_from(&choice.profile);
        self.chosen_model = Some(Box::new(choice.clone()));
        // The lines that were used belong to the previous script.
        self.used_script_lines.clear();
        self.wanted_profile = None;
    }

    pub(super) fn reject_profile(&mut self) {
        let chosen = self.chosen_model.as_ref();
        self.profile = chosen.and_then(|choice| choice.profile.clone());
        self.wanted_profile = None;
    }

    /// Records a profile that the ladder or the doctor requests. A request of the user has precedence.
    pub(super) fn request_profile(&mut self, profile: &str) {
        if self.model_choice().overrides_all_profiles() {
            self.profile = Some(profile.to_owned());
        } else if self.wanted_profile.is_none() {
            self.wanted_profile = Some(profile.to_owned());
        }
    }

    /// Returns the first iteration in which the fallback agent works; `None` if it has not replaced the
    /// agent.
    pub fn fallback_agent_since(&self) -> Option<u32> {
        match self.fallback_agent {
            FallbackAgentUse::Unused | FallbackAgentUse::Wanted => None,
            FallbackAgentUse::Since(iteration) => Some(iteration),
        }
    }

    /// Returns the agent that works in the next session; `None` if a model does the work.
    pub fn agent_in_force(&self) -> Option<&AgentPlan> {
        let agent = self.plan.agent.as_ref()?;
        match (&agent.fallback, self.fallback_agent_since()) {
            (Some(fallback), Some(_)) => Some(fallback),
            (_, _) => Some(agent),
        }
    }

    /// Returns the agent that can still replace the agent, or the reason why there is none.
    pub fn available_fallback_agent(&self) -> Result<&AgentPlan, String> {
        let agent = self.plan.agent.as_ref();
        let fallback = agent.and_then(|agent| agent.fallback.as_deref());
        let Some(fallback) = fallback else {
            return Err("neither the task nor the settings name an `agent_fallback`".into());
        };
        match self.fallback_agent_since() {
            None => Ok(fallback),
            Some(_) => Err(format!(
                "the agent `{}` is already in use",
                fallback.label()
            )),
        }
    }

    /// Returns the model in use and its parameters.
    pub fn model_choice(&self) -> ModelChoice {
        let named = || ModelChoice::for_model(&self.plan.model);
        self.chosen_model.as_deref().cloned().unwrap_or_else(named)
    }
}

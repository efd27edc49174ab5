//! Which model answers.

use super::RunState;
use crate::profile::ModelChoice;

impl RunState {
    /// Notes a profile that the ladder or the doctor wants. What a person wants comes first.
    pub(super) fn switch_to(&mut self, profile: &str) {
        if self.model_choice().stands_in_for_all() {
            self.profile = Some(profile.to_owned());
        } else if self.wanted_profile.is_none() {
            self.wanted_profile = Some(profile.to_owned());
        }
    }

    /// Returns which model answers, and how it is asked.
    pub fn model_choice(&self) -> ModelChoice {
        let named = || ModelChoice::named(&self.plan.model);
        self.choice.as_deref().cloned().unwrap_or_else(named)
    }
}

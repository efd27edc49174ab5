//! Which model answers.

use super::RunState;
use crate::profile::ModelChoice;

impl RunState {
    /// Notes a profile that the ladder or the doctor wants. What a person wants comes first.
    pub(super) fn request_profile(&mut self, profile: &str) {
        if self.model_choice().overrides_all_profiles() {
            self.profile = Some(profile.to_owned());
        } else if self.wanted_profile.is_none() {
            self.wanted_profile = Some(profile.to_owned());
        }
    }

    /// Returns which model answers, and how it is asked.
    pub fn model_choice(&self) -> ModelChoice {
        let named = || ModelChoice::for_model(&self.plan.model);
        self.chosen_model.as_deref().cloned().unwrap_or_else(named)
    }
}

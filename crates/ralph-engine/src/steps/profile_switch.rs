//! Another model for the next question, when a person, the ladder or the doctor wants one.

use ralph_core::event::RunEvent;

use crate::error::RunError;
use crate::run::Run;

impl Run {
    /// Takes up the profile that is wanted, or says why it cannot be used.
    pub(crate) fn apply_wanted_profile(&mut self) -> Result<(), RunError> {
        let Some(profile) = self.state().wanted_profile.clone() else {
            return self.announce_substituted_profile();
        };
        // A person may want another model even where the run's own stands in for all.
        match (self.services.profiles.choose)(&profile) {
            Ok(chosen) => {
                let model = chosen.choice.model.clone();
                self.log_activity(&format!(
                    "the model is `{model}` of profile `{profile}` from now on"
                ))?;
                let choice = Box::new(chosen.choice);
                self.journal.append(RunEvent::ModelChosen { choice })?;
                self.services.model = chosen.model;
                self.services.price = chosen.price;
            }
            Err(why) => {
                self.log_activity(&format!("profile `{profile}` cannot be used: {why}"))?;
                self.journal
                    .append(RunEvent::ProfileRejected { profile, why })?;
            }
        }
        Ok(())
    }

    /// Tells for which profile the run's own model answers, where it stands in for all.
    fn announce_substituted_profile(&mut self) -> Result<(), RunError> {
        let profile = self.state().profile.clone();
        if profile == self.announced_profile
            || !self.state().model_choice().overrides_all_profiles()
        {
            return Ok(());
        }
        if let Some(profile) = &profile {
            self.log_activity(&format!("the profile `{profile}` answers from now on"))?;
        }
        self.announced_profile = profile;
        Ok(())
    }
}

//! Another model for the next question, when a person wants one.

use ralph_core::event::Event;

use crate::error::RunError;
use crate::run::Run;

impl Run {
    /// Takes up the profile that a person wants, or says why it cannot be used.
    pub(crate) fn take_up_profile(&mut self) -> Result<(), RunError> {
        let Some(profile) = self.state().wanted_profile.clone() else {
            return Ok(());
        };
        match (self.outside.profiles)(&profile) {
            Ok(chosen) => {
                let model = chosen.choice.model.clone();
                self.log_activity(&format!(
                    "the model is `{model}` of profile `{profile}` from now on"
                ))?;
                let choice = Box::new(chosen.choice);
                self.journal.append(Event::ModelChosen { choice })?;
                self.outside.model = chosen.model;
                self.outside.price = chosen.price;
            }
            Err(why) => {
                self.log_activity(&format!("profile `{profile}` cannot be used: {why}"))?;
                self.journal
                    .append(Event::ProfileRejected { profile, why })?;
            }
        }
        Ok(())
    }
}

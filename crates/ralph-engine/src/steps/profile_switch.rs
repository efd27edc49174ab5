//! Another model for the next question, when a person, the ladder or the doctor wants one.

use ralph_core::event::RunEvent;

use crate::error::RunError;
use crate::run::Run;

/// Takes up the profile that is wanted, or says why it cannot be used.
pub(crate) fn apply_wanted_profile(run: &mut Run) -> Result<(), RunError> {
    let Some(profile) = run.recorder.state().wanted_profile.clone() else {
        return announce_substituted_profile(run);
    };
    // A person may want another model even where the run's own stands in for all.
    match (run.services.profiles.choose)(&profile) {
        Ok(chosen) => {
            let model = chosen.choice.model.clone();
            run.recorder.log_activity(&format!(
                "the model is `{model}` of profile `{profile}` from now on"
            ))?;
            let choice = Box::new(chosen.choice);
            run.recorder.append(RunEvent::ModelChosen { choice })?;
            run.services.model = chosen.model;
            run.services.price = chosen.price;
        }
        Err(why) => {
            run.recorder
                .log_activity(&format!("profile `{profile}` cannot be used: {why}"))?;
            run.recorder
                .append(RunEvent::ProfileRejected { profile, why })?;
        }
    }
    Ok(())
}

/// Tells for which profile the run's own model answers, where it stands in for all.
fn announce_substituted_profile(run: &mut Run) -> Result<(), RunError> {
    let profile = run.recorder.state().profile.clone();
    if profile == run.announced_profile
        || !run.recorder.state().model_choice().overrides_all_profiles()
    {
        return Ok(());
    }
    if let Some(profile) = &profile {
        run.recorder
            .log_activity(&format!("the profile `{profile}` answers from now on"))?;
    }
    run.announced_profile = profile;
    Ok(())
}

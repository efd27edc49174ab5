//! Switches to another model when the user, the ladder or the doctor requests one.

use ralph_core::event::RunEvent;

use crate::error::RunError;
use crate::run::Run;

/// Applies the requested profile, or logs why it cannot be used.
pub(crate) fn apply_wanted_profile(run: &mut Run) -> Result<(), RunError> {
    let Some(profile) = run.recorder.state().wanted_profile.clone() else {
        return announce_substituted_profile(run);
    };
    // The user may request another model even if the run's own replaces all profiles.
    match (run.services.profiles.choose)(&profile) {
        Ok(chosen) => {
            let model = chosen.choice.model.clone();
            run.recorder
                .log_activity(&format!("now using model `{model}` of profile `{profile}`"))?;
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

/// Logs the profile that the run's own model replaces, if it replaces all of them.
fn announce_substituted_profile(run: &mut Run) -> Result<(), RunError> {
    let profile = run.recorder.state().profile.clone();
    if profile == run.announced_profile
        || !run.recorder.state().model_choice().overrides_all_profiles()
    {
        return Ok(());
    }
    if let Some(profile) = &profile {
        run.recorder
            .log_activity(&format!("now using profile `{profile}`"))?;
    }
    run.announced_profile = profile;
    Ok(())
}

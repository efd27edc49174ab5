//! Pins the configuration of a run in its plan, so that the run does not depend on the working
//! directory of the process that resumes it.

use std::borrow::Cow;
use std::path::Path;

use ralph_core::plan::{PinnedSettings, RunPlan};

use crate::app::App;
use crate::config::publish_policy;
use crate::error::AppError;

/// Returns the configuration of the working directory. Omits profiles that contain a secret, because
/// the journal stores none; such a profile is read from the configuration when it is chosen.
pub(crate) fn pin_settings(app: &App) -> Result<PinnedSettings, AppError> {
    let redactor = app.redactor();
    let (mut profiles, doctor_profile) = app.providers_read_only()?.models.pinned_profiles()?;
    profiles.retain(|name, choice| {
        let text = format!("{choice:?}");
        let is_clean = *redactor.redact(&text) == *text;
        if !is_clean {
            tracing::warn!(
                profile = name,
                "the profile contains a secret and is not pinned"
            );
        }
        is_clean
    });
    let settings = app.settings()?;
    let publish = publish_policy(&settings.ci, &settings.reviews, &settings.overlap);
    Ok(PinnedSettings {
        directory: app
            .environment()
            .working_dir()
            .to_string_lossy()
            .into_owned(),
        profiles,
        doctor_profile,
        fallback_profile: app.environment().fallback_profile().map(str::to_owned),
        outage: settings.model.outage_policy(),
        publish: Some(publish),
        state_ref: (!settings.git.state_ref).then_some(false),
        author: Some(settings.git.worktree),
        command_timeout_minutes: Some(settings.sandbox.resources.timeout_minutes),
    })
}

/// Returns the application context in the directory that a run was planned in, whose project's files
/// count for its later runs.
pub fn app_for_run(plan: &RunPlan, app: &App) -> Result<App, AppError> {
    let (_, app) = for_existing_run(plan, app)?;
    Ok(app)
}

/// Returns the plan of a run with its pinned configuration, and the application context in the
/// directory that the run was planned in. Plans of older versions pin nothing: they get the
/// configuration of the working directory.
pub(crate) fn for_existing_run<'a>(
    plan: &'a RunPlan,
    app: &App,
) -> Result<(Cow<'a, RunPlan>, App), AppError> {
    if let Some(settings) = &plan.settings {
        let app = app.in_directory(Path::new(&settings.directory));
        return Ok((Cow::Borrowed(plan), app));
    }
    let mut plan = plan.clone();
    plan.settings = Some(pin_settings(app)?);
    let app = app.in_directory(app.environment().working_dir());
    Ok((Cow::Owned(plan), app))
}

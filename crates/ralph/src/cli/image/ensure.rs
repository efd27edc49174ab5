//! Gives a run its image.

use std::path::Path;

use ralph_core::id::CommitId;
use ralph_core::image::{AgentImage, ImageEffort};
use ralph_core::plan::RunPlan;

use super::command::{self, ImageProgressOutput};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::trust::unapproved_image;
use crate::providers::Providers;
use crate::providers::image::{ImageBase, ImageProject, ImageRecipe};
use crate::terminal::OutputMode;

/// Gives the containers of a plan the image that they start from, after building what is missing of
/// it: that of the agent, with what the project adds. What the project says about it is read from the commit that the run starts from.
pub(in crate::cli) async fn ensure_image(
    (plan, agent): (&mut RunPlan, AgentImage),
    effort: ImageEffort,
    mode: OutputMode,
    context: &Context,
    wiring: &Providers,
) -> Result<(), CliError> {
    let Some(container) = &mut plan.container else {
        return Ok(());
    };
    let base_image = context.settings()?.sandbox.base_image;
    let base = ImageBase::from_settings(&container.image, &base_image).map_err(|error| {
        CliError::usage(
            "the image of the containers cannot be one",
            error.to_string(),
            "correct `sandbox_image` in the task file, or `image` in ralph.toml",
        )
    })?;
    let project = load_project(plan.repo.as_ref(), &plan.base, wiring).await?;
    // The branch may have moved since the user approved what was on it.
    if let Some(proposal) = unapproved_image(&project.config, &context.layers()) {
        return Err(CliError::usage(
            format!("the image of `{}` is not approved", proposal.file),
            proposal.allows,
            "see and approve it with `ralph trust`",
        ));
    }
    let recipe = ImageRecipe {
        agent,
        base,
        project: Some(project),
    };
    let images = wiring.images(container.engine.as_deref()).await;
    let images = images.map_err(|error| command::problem_error(&error.problem()))?;
    let mut shown = ImageProgressOutput::with_mode(context, mode);
    let ensured = images
        .ensure(&recipe, effort, &mut |progress| shown.show(progress))
        .await;
    match ensured {
        Ok(image) => container.image = image.to_string(),
        Err(error) => return Err(shown.into_error(&error)),
    }
    Ok(())
}

/// Returns what a repository says about its image at a commit.
async fn load_project(
    repository: &Path,
    commit: &CommitId,
    wiring: &Providers,
) -> Result<ImageProject, CliError> {
    let config = wiring
        .git()?
        .project_config(repository, commit)
        .await
        .map_err(|error| {
            let what = format!("cannot read `.agent-loop` of `{}`", repository.display());
            CliError::runtime(what, error.to_string(), error.hint())
        })?;
    let name = repository.file_name().unwrap_or_default();
    Ok(ImageProject {
        name: name.to_string_lossy().trim_end_matches(".git").to_owned(),
        config,
    })
}

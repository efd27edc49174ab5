//! The requirements of a fallback agent that the agent of a run does not have.

use ralph_core::image::AgentImage;
use ralph_core::plan::ContainerPlan;
use ralph_providers::agent::Preset;

use crate::agent::AgentAccess;
use crate::error::AppError;

/// Returns an error if the image of a run contains the agent but not its fallback.
pub(crate) fn require_common_image(
    access: Option<&AgentAccess>,
    container: Option<&ContainerPlan>,
) -> Result<(), AppError> {
    let (Some(access), Some(container)) = (access, container) else {
        return Ok(());
    };
    match &access.fallback {
        Some(fallback) => require_image_for(&access.preset, &fallback.preset, &container.image),
        None => Ok(()),
    }
}

/// Returns an error if `image`, as the settings name it, contains the agent but not its fallback.
pub(crate) fn require_image_for(
    agent: &Preset,
    fallback: &Preset,
    image: &str,
) -> Result<(), AppError> {
    let images = [agent, fallback].map(|preset| AgentImage::for_agent(&preset.image));
    // Every image contains the programs of the plain one.
    if image != "auto" || images[1] == images[0] || images[1] == AgentImage::Plain {
        return Ok(());
    }
    Err(AppError::usage(
        format!("the fallback agent `{}` cannot be used", fallback.name),
        format!("the image of `{}` does not contain it", agent.name),
        format!(
            "choose another model of `{0}`, such as `agent_fallback: {0}:MODEL`, or set `sandbox_image` to an \
             image with both",
            agent.name
        ),
    ))
}

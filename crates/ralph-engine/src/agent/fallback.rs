//! Replaces the agent of a run with its fallback: on the ladder of mitigations, or when the agent's
//! provider cannot be used. The fallback works for the rest of the run.

use std::sync::Arc;

use ralph_core::event::AgentSessionEvent;
use ralph_core::ports::Agent;
use ralph_core::state::FallbackAgentUse;

use crate::error::RunError;
use crate::run::Run;

/// Switches to the fallback agent, if the ladder requested it.
pub(crate) fn apply_wanted_agent(run: &mut Run) -> Result<(), RunError> {
    if run.recorder.state().fallback_agent == FallbackAgentUse::Wanted {
        switch_to_fallback(run, "the run is circling")?;
    }
    Ok(())
}

/// Switches to the fallback agent, and returns it. Returns `None` if there is none that has not been
/// in use.
pub(super) fn switch_to_fallback(
    run: &mut Run,
    why: &str,
) -> Result<Option<Arc<dyn Agent>>, RunError> {
    let state = run.recorder.state();
    let (Some(agent), Ok(plan)) = (
        run.services.fallback_agent.clone(),
        state.available_fallback_agent(),
    ) else {
        return Ok(None);
    };
    // Between iterations, the fallback starts with the next one.
    let iteration = state.iteration + u32::from(state.open.is_none());
    let label = plan.label();
    run.recorder
        .log_activity(&format!("now using the fallback agent `{label}`: {why}"))?;
    run.recorder.append(AgentSessionEvent::AgentSwitched {
        iteration,
        agent: label,
        why: why.to_owned(),
    })?;
    Ok(Some(agent))
}

//! The start of an iteration, and the charges of abandoned calls.

use ralph_core::event::{Event, IterationEvent, ModelEvent};
use ralph_core::ports::TokenUsage;
use ralph_core::price;

use super::ask::model_attempts;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::services::Services;
use crate::steps::IterationScratch;

/// Bytes of a prompt per token, for an estimate.
const BYTES_PER_TOKEN: usize = 4;

/// Starts an iteration, or resumes the one that a restart left open.
pub(crate) fn begin_iteration(
    recorder: &mut Recorder,
    services: &Services,
    scratch: &mut IterationScratch,
) -> Result<(), RunError> {
    if recorder.state().open.is_some() {
        return resume_iteration(recorder, services, scratch);
    }
    let iteration = recorder.state().iteration + 1;
    let head = recorder.state().head.clone();
    // Record it first: a directory that is not in the journal would be orphaned by a crash.
    recorder.append(IterationEvent::IterationStarted { iteration, head })?;
    recorder.dir.reopen_iteration(iteration)?;
    recorder.warn_about_budgets()?;
    recorder.log_activity(&format!("iteration {iteration} starts"))
}

fn resume_iteration(
    recorder: &mut Recorder,
    services: &Services,
    scratch: &mut IterationScratch,
) -> Result<(), RunError> {
    let iteration = recorder.state().iteration;
    recorder.dir.reopen_iteration(iteration)?;
    scratch.resumed = true;
    recorder.log_activity(&format!(
        "iteration {iteration} resumes after an interruption"
    ))?;
    charge_abandoned_call(recorder, services)
}

/// Charges a call whose reply never arrived: the provider bills it, too.
pub(crate) fn charge_abandoned_call(
    recorder: &mut Recorder,
    services: &Services,
) -> Result<(), RunError> {
    let Some(open) = recorder.state().open.as_ref().filter(|open| open.waiting) else {
        return Ok(());
    };
    let estimate = TokenUsage {
        input_tokens: (open.prompt_bytes / BYTES_PER_TOKEN) as u64,
        ..TokenUsage::default()
    };
    record_abandoned_call(recorder, services, open.reserved.unwrap_or(estimate))
}

/// Charges a call of the open iteration that did not complete.
pub(super) fn record_abandoned_call(
    recorder: &mut Recorder,
    services: &Services,
    usage: TokenUsage,
) -> Result<(), RunError> {
    let event = Event::Model(ModelEvent::ModelAbandoned {
        iteration: recorder.state().iteration,
        attempt: model_attempts(recorder),
        usage,
        cost_usd: price::cost(&services.price, &usage),
    });
    recorder.append(event)?;
    recorder.warn_about_budgets()
}

//! Calls the model: retries while the provider is not available, and charges every call.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::action::limits::MAX_REPLY_BYTES;
use ralph_core::event::ModelEvent;
use ralph_core::id::Digest;
use ralph_core::outage::{Outage, OutageStep};
use ralph_core::ports::{ModelError, ModelReply, ModelRequest, TokenUsage};
use ralph_core::price;

use super::ask::model_attempts;
use super::begin::{charge_abandoned_call, record_abandoned_call};
use super::quota;
use super::responses::write_responses;
use super::responses::{Attempt, Responses};
use super::waiting::wait_for_model;
use super::waiting::{WaitReason, random_jitter};
use crate::controls::{Controls, PendingRequest};
use crate::durable;
use crate::error::RunError;
use crate::journal::millis;
use crate::recorder::Recorder;
use crate::reservation::{ReservedRequest, reserve_request};
use crate::run::{Run, attend_until_rotated};
use crate::running_time;
use crate::services::Services;

/// The outcome of calling the model.
pub(super) enum CallOutcome {
    /// The reply, which is charged and stored.
    Reply(Attempt),
    /// A budget is used up.
    OutOfBudget,
    /// The user requested a fresh iteration.
    Rotated,
}

/// The end of a wait for one reply.
enum AwaitedReply {
    /// The model replied or failed.
    Ended(Result<ModelReply, ModelError>),
    /// The wall time is used up.
    TimedOut,
    /// The user requested a fresh iteration, which cancels the call.
    Rotated,
}

/// Asks until there is a reply, a budget is used up or the user requests a fresh iteration. Provider
/// errors use no iterations.
pub(super) async fn call_model(
    run: &mut Run,
    request: &ModelRequest,
    responses: &mut Responses,
) -> Result<CallOutcome, RunError> {
    let text = request.text();
    durable::write_unsynced(
        &run.recorder.open_iteration_file("prompt.md"),
        text.as_bytes(),
    )?;
    let mut outage = Outage::new(run.services.outage);
    let (mut is_first, mut quota_hits) = (true, 0);
    loop {
        if run.controls.pending == Some(PendingRequest::Rotate) {
            return rotate(run, responses);
        }
        if !is_first && run.recorder.exhausted_budget().is_some() {
            return Ok(CallOutcome::OutOfBudget);
        }
        is_first = false;
        let Some(reserved) = reserve_call(&mut run.recorder, &run.services, request) else {
            // An iteration without a call also has the file.
            write_responses(&run.recorder, responses)?;
            return Ok(CallOutcome::OutOfBudget);
        };
        let started = run.recorder.clock.monotonic();
        record_question(&mut run.recorder, &text, reserved.usage)?;
        let error = match await_reply(
            &mut run.recorder,
            &mut run.controls,
            &run.services,
            &reserved.request,
        )
        .await?
        {
            AwaitedReply::TimedOut => return Ok(CallOutcome::OutOfBudget),
            AwaitedReply::Rotated => return rotate(run, responses),
            AwaitedReply::Ended(Ok(reply)) => {
                let waited = run.recorder.clock.monotonic().saturating_sub(started);
                return record_reply(&mut run.recorder, &run.services, reply, responses, waited)
                    .map(CallOutcome::Reply);
            }
            AwaitedReply::Ended(Err(error)) => error,
        };
        if let ModelError::QuotaUsedUp { resets_in, .. } = &error {
            // Waiting for the end of a usage limit is not a failed attempt.
            outage.reset();
            quota_hits += 1;
            let Some(wait) = quota::quota_wait(*resets_in, quota_hits) else {
                log_failure(&mut run.recorder, &run.services, &error, None)?;
                return Err(error.into());
            };
            log_failure(&mut run.recorder, &run.services, &error, Some(wait))?;
            wait_for_model(run, WaitReason::Quota, wait, error.to_string()).await?;
            continue;
        }
        wait_before_retry(run, error, &mut outage).await?;
    }
}

/// Ends the iteration for a fresh one, as the user requested.
fn rotate(run: &mut Run, responses: &Responses) -> Result<CallOutcome, RunError> {
    run.controls.pending = None;
    run.recorder.log_activity("rotated by the user")?;
    // An iteration without a reply also has the file.
    write_responses(&run.recorder, responses)?;
    Ok(CallOutcome::Rotated)
}

/// Waits before the next attempt after a failed one. An error means that no further attempt helps.
async fn wait_before_retry(
    run: &mut Run,
    error: ModelError,
    outage: &mut Outage,
) -> Result<(), RunError> {
    match next_step(&error, outage) {
        None => {
            log_failure(&mut run.recorder, &run.services, &error, None)?;
            Err(error.into())
        }
        Some(OutageStep::GiveUp) => {
            log_failure(&mut run.recorder, &run.services, &error, None)?;
            if matches!(error, ModelError::CutOff { .. }) {
                // Too many responses broke off, each of which was billed.
                return Err(error.into());
            }
            let waited = outage.waited();
            let error = Box::new(error);
            Err(RunError::Outage { error, waited })
        }
        Some(OutageStep::Retry(delay)) => {
            log_failure(&mut run.recorder, &run.services, &error, Some(delay))?;
            let clock = run.recorder.clock.clone();
            let sleeping = running_time::sleep(&*clock, delay.min(run.recorder.time_left()));
            let (journal, controls) = (&mut run.recorder.journal, &mut run.controls);
            attend_until_rotated(journal, controls, sleeping).await?;
            Ok(())
        }
        Some(OutageStep::Wait(delay)) => {
            // The error log is a part of prompts: a long outage must not fill it.
            record_failure(&mut run.recorder, &run.services, &error, Some(delay))?;
            let previous_model = run.services.model.clone();
            wait_for_model(run, WaitReason::Provider, delay, error.to_string()).await?;
            if !Arc::ptr_eq(&previous_model, &run.services.model) {
                // The user chose another model: its provider has not failed yet.
                outage.reset();
            }
            Ok(())
        }
    }
}

/// Reserves the maximum cost of a call; none if a budget cannot pay for it, which ends the run.
fn reserve_call(
    recorder: &mut Recorder,
    services: &Services,
    request: &ModelRequest,
) -> Option<ReservedRequest> {
    let reserved = reserve_request(
        &*services.model,
        &services.price,
        recorder.limits(),
        &recorder.spent(),
        request,
    );
    match reserved {
        Ok(reserved) => Some(reserved),
        Err(budget) => {
            recorder.mark_unaffordable(budget);
            None
        }
    }
}

fn record_question(
    recorder: &mut Recorder,
    text: &str,
    reserved: Option<TokenUsage>,
) -> Result<(), RunError> {
    recorder.append(ModelEvent::ModelAsked {
        iteration: recorder.state().iteration,
        attempt: model_attempts(recorder) + 1,
        prompt: Digest::compute(text.as_bytes()),
        prompt_bytes: text.len(),
        reserved,
    })?;
    Ok(())
}

fn log_failure(
    recorder: &mut Recorder,
    services: &Services,
    error: &ModelError,
    retry: Option<Duration>,
) -> Result<(), RunError> {
    recorder.log_error(&error.to_string())?;
    record_failure(recorder, services, error, retry)
}

/// Records a failed call in the journal and charges a response that broke off.
fn record_failure(
    recorder: &mut Recorder,
    services: &Services,
    error: &ModelError,
    retry: Option<Duration>,
) -> Result<(), RunError> {
    recorder.append(ModelEvent::ModelFailed {
        iteration: recorder.state().iteration,
        attempt: model_attempts(recorder),
        error: error.to_string(),
        retry_in_ms: retry.map(millis),
    })?;
    if let ModelError::CutOff { partial, usage, .. } = error {
        // Only for the user: an incomplete reply is never performed.
        let partial = recorder.redactor.redact(partial);
        durable::write_unsynced(
            &recorder.open_iteration_file("response.partial"),
            partial.as_bytes(),
        )?;
        record_abandoned_call(recorder, services, *usage)?;
    }
    Ok(())
}

/// Waits for a reply while receiving user commands, but not beyond the wall time. A cancelled call is
/// charged by its reservation: the provider bills it, too.
async fn await_reply(
    recorder: &mut Recorder,
    controls: &mut Controls,
    services: &Services,
    request: &ModelRequest,
) -> Result<AwaitedReply, RunError> {
    let model = services.model.clone();
    let clock = recorder.clock.clone();
    let asking = running_time::timeout(&*clock, recorder.time_left(), model.ask_once(request));
    let awaited = attend_until_rotated(&mut recorder.journal, controls, asking).await?;
    if let Some(Ok(reply)) = awaited {
        return Ok(AwaitedReply::Ended(reply));
    }
    charge_abandoned_call(recorder, services)?;
    if awaited.is_none() {
        recorder.append(ModelEvent::ModelFailed {
            iteration: recorder.state().iteration,
            attempt: model_attempts(recorder),
            error: "cancelled: the user requested a fresh iteration".into(),
            retry_in_ms: None,
        })?;
        return Ok(AwaitedReply::Rotated);
    }
    let (model, message) = (model.name().to_owned(), "the wall time is used up".into());
    let timeout = ModelError::Transient {
        model,
        status: 0,
        retry_after: None,
        message,
    };
    log_failure(recorder, services, &timeout, None)?;
    Ok(AwaitedReply::TimedOut)
}

/// Stores a reply and charges it before it is parsed: the provider bills unreadable replies, too.
///
/// The stored copy is redacted; the reply itself is performed as the model wrote it. The journal
/// has the digest of the original, so that a redacted copy is never mistaken for it after a
/// restart.
fn record_reply(
    recorder: &mut Recorder,
    services: &Services,
    reply: ModelReply,
    responses: &mut Responses,
    waited: Duration,
) -> Result<Attempt, RunError> {
    let attempt = Attempt {
        attempt: model_attempts(recorder),
        model: services.model.name().to_owned(),
        answered_by: reply.answered_by,
        reply: truncated_reply(&reply.text).to_owned(),
        finish: reply.finish,
        usage: reply.usage,
        error: None,
    };
    responses.attempts.push(attempt.clone());
    write_responses(recorder, responses)?;
    recorder.append(ModelEvent::ModelReplied {
        iteration: recorder.state().iteration,
        attempt: attempt.attempt,
        response: Digest::compute(attempt.reply.as_bytes()),
        usage: reply.usage,
        cost_usd: reply
            .billed
            .unwrap_or_else(|| price::cost(&services.price, &reply.usage)),
        duration_ms: millis(waited),
        source: reply.source,
    })?;
    recorder.warn_about_budgets()?;
    Ok(attempt)
}

/// Returns the stored part of a reply: one byte more than the limit, so that it is still too long.
fn truncated_reply(text: &str) -> &str {
    let mut end = text.len().min(MAX_REPLY_BYTES + 1);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    &text[..end]
}

/// Decides the next step after a failed call; none if another attempt would fail in the same way.
fn next_step(error: &ModelError, outage: &mut Outage) -> Option<OutageStep> {
    match error {
        ModelError::Transient { retry_after, .. } => {
            Some(outage.record_unanswered(*retry_after, random_jitter()))
        }
        ModelError::CutOff { .. } => Some(outage.record_cut_off(random_jitter())),
        ModelError::Unauthorized { .. }
        | ModelError::Broken { .. }
        | ModelError::QuotaUsedUp { .. } => None,
    }
}

//! Calling the model: retries while the provider is not available, every call charged.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::action::limits::MAX_REPLY_BYTES;
use ralph_core::budget;
use ralph_core::event::ModelEvent;
use ralph_core::id::Digest;
use ralph_core::outage::{Outage, OutageStep};
use ralph_core::ports::{ModelError, ModelReply, ModelRequest, TokenUsage};
use ralph_core::price;

use super::quota;
use super::responses::{Attempt, Responses};
use super::waiting::{WaitReason, random_jitter};
use crate::durable;
use crate::error::RunError;
use crate::journal::millis;
use crate::reservation::{ReservedRequest, reserve_request};
use crate::run::{Run, attend};
use crate::running_time;

impl Run {
    /// Asks until there is a reply; none if the time is used up. Provider errors use up no iterations.
    pub(super) async fn call_model(
        &mut self,
        request: &ModelRequest,
        responses: &mut Responses,
    ) -> Result<Option<Attempt>, RunError> {
        let text = request.text();
        durable::write_unsynced(&self.open_iteration_file("prompt.md"), text.as_bytes())?;
        let mut outage = Outage::new(self.services.outage);
        let (mut is_first, mut looks) = (true, 0);
        loop {
            let limits = self.pinned.contract().limits();
            if !is_first && budget::exhausted(&limits, &self.spent()).is_some() {
                return Ok(None);
            }
            is_first = false;
            let Some(reserved) = self.reserve_call(request) else {
                // An iteration without a call has the file, too.
                self.write_responses(responses)?;
                return Ok(None);
            };
            let started = self.services.clock.monotonic();
            self.record_question(&text, reserved.usage)?;
            let error = match self.await_reply(&reserved.request).await? {
                None => return Ok(None),
                Some(Ok(reply)) => {
                    let waited = self.services.clock.monotonic().saturating_sub(started);
                    return self.record_reply(reply, responses, waited).map(Some);
                }
                Some(Err(error)) => error,
            };
            if let ModelError::QuotaUsedUp { resets_in, .. } = &error {
                // Waiting for the end of a usage limit is no failed try.
                outage.reset();
                looks += 1;
                let Some(wait) = quota::quota_wait(*resets_in, looks) else {
                    self.log_failure(&error, None)?;
                    return Err(error.into());
                };
                self.log_failure(&error, Some(wait))?;
                self.wait_for_model(WaitReason::Quota, wait, error.to_string())
                    .await?;
                continue;
            }
            self.wait_before_retry(error, &mut outage).await?;
        }
    }

    /// Waits before the next attempt after a failed one. An error means that no further attempt helps.
    async fn wait_before_retry(
        &mut self,
        error: ModelError,
        outage: &mut Outage,
    ) -> Result<(), RunError> {
        match next_step(&error, outage) {
            None => {
                self.log_failure(&error, None)?;
                Err(error.into())
            }
            Some(OutageStep::GiveUp) => {
                self.log_failure(&error, None)?;
                if matches!(error, ModelError::CutOff { .. }) {
                    // Too many answers broke off, each of which was billed.
                    return Err(error.into());
                }
                let waited = outage.waited();
                let error = Box::new(error);
                Err(RunError::Outage { error, waited })
            }
            Some(OutageStep::Retry(delay)) => {
                self.log_failure(&error, Some(delay))?;
                let clock = self.services.clock.clone();
                let sleeping = running_time::sleep(&*clock, delay.min(self.time_left()));
                attend(&mut self.journal, &mut self.control, sleeping).await
            }
            Some(OutageStep::Wait(delay)) => {
                // The log of errors is a part of prompts: a long outage must not fill it.
                self.record_failure(&error, Some(delay))?;
                let asked = self.services.model.clone();
                self.wait_for_model(WaitReason::Provider, delay, error.to_string())
                    .await?;
                if !Arc::ptr_eq(&asked, &self.services.model) {
                    // The user chose another model: its provider has not failed yet.
                    outage.reset();
                }
                Ok(())
            }
        }
    }

    /// Reserves what a call can cost; none if a budget does not pay for it, which ends the run.
    fn reserve_call(&mut self, request: &ModelRequest) -> Option<ReservedRequest> {
        let limits = self.pinned.contract().limits();
        let outside = &self.services;
        let reserved = reserve_request(
            &*outside.model,
            &outside.price,
            &limits,
            &self.spent(),
            request,
        );
        match reserved {
            Ok(reserved) => Some(reserved),
            Err(budget) => {
                self.unaffordable = Some((budget, limits));
                None
            }
        }
    }

    fn record_question(
        &mut self,
        text: &str,
        reserved: Option<TokenUsage>,
    ) -> Result<(), RunError> {
        self.journal.append(ModelEvent::ModelAsked {
            iteration: self.state().iteration,
            attempt: self.model_attempts() + 1,
            prompt: Digest::compute(text.as_bytes()),
            prompt_bytes: text.len(),
            reserved,
        })?;
        Ok(())
    }

    fn log_failure(&mut self, error: &ModelError, retry: Option<Duration>) -> Result<(), RunError> {
        self.log_error(&error.to_string())?;
        self.record_failure(error, retry)
    }

    /// Records a failed call in the journal and charges an answer that broke off.
    fn record_failure(
        &mut self,
        error: &ModelError,
        retry: Option<Duration>,
    ) -> Result<(), RunError> {
        self.journal.append(ModelEvent::ModelFailed {
            iteration: self.state().iteration,
            attempt: self.model_attempts(),
            error: error.to_string(),
            retry_in_ms: retry.map(millis),
        })?;
        if let ModelError::CutOff { partial, usage, .. } = error {
            // For people: nothing of half an answer is ever performed.
            let partial = self.services.redactor.redact(partial);
            durable::write_unsynced(
                &self.open_iteration_file("response.partial"),
                partial.as_bytes(),
            )?;
            self.record_abandoned_call(*usage)?;
        }
        Ok(())
    }

    /// Waits for an answer while listening to people, but not beyond the wall time.
    async fn await_reply(
        &mut self,
        request: &ModelRequest,
    ) -> Result<Option<Result<ModelReply, ModelError>>, RunError> {
        let model = self.services.model.clone();
        let clock = self.services.clock.clone();
        let asking = running_time::timeout(&*clock, self.time_left(), model.ask_once(request));
        let heard = attend(&mut self.journal, &mut self.control, asking).await?;
        if heard.is_err() {
            self.charge_abandoned_call()?;
            let (model, message) = (model.name().to_owned(), "the wall time is used up".into());
            let late = ModelError::Transient {
                model,
                status: 0,
                retry_after: None,
                message,
            };
            self.log_failure(&late, None)?;
        }
        Ok(heard.ok())
    }

    /// Stores a reply and charges it before it is parsed: the provider bills unreadable replies, too.
    ///
    /// The stored copy is redacted; the reply itself is performed as the model wrote it. The journal has
    /// the digest of the original, so that a redacted copy is never mistaken for it after a restart.
    fn record_reply(
        &mut self,
        reply: ModelReply,
        responses: &mut Responses,
        waited: Duration,
    ) -> Result<Attempt, RunError> {
        let attempt = Attempt {
            attempt: self.model_attempts(),
            model: self.services.model.name().to_owned(),
            answered_by: reply.answered_by,
            reply: truncated_reply(&reply.text).to_owned(),
            finish: reply.finish,
            usage: reply.usage,
            error: None,
        };
        responses.attempts.push(attempt.clone());
        self.write_responses(responses)?;
        self.journal.append(ModelEvent::ModelReplied {
            iteration: self.state().iteration,
            attempt: attempt.attempt,
            response: Digest::compute(attempt.reply.as_bytes()),
            usage: reply.usage,
            cost_usd: reply
                .billed
                .unwrap_or_else(|| price::cost(&self.services.price, &reply.usage)),
            duration_ms: millis(waited),
            source: reply.source,
        })?;
        self.warn_about_budgets()?;
        Ok(attempt)
    }
}

/// Returns as much of a reply as is kept: one byte more than may be read, so that it is still too long.
fn truncated_reply(text: &str) -> &str {
    let mut end = text.len().min(MAX_REPLY_BYTES + 1);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    &text[..end]
}

/// Decides what follows a failed call; none if another attempt fails in the same way.
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

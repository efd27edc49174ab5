//! Calling the model: retries while the provider is not available, every call charged.

use std::time::Duration;

use ralph_core::action::limits::MAX_REPLY_BYTES;
use ralph_core::event::Event;
use ralph_core::id::Digest;
use ralph_core::ports::{ModelError, ModelRequest, Reply};
use ralph_core::price;
use ralph_core::secret::Shapes;

use super::responses::{Attempt, Responses};
use crate::durable;
use crate::error::RunError;
use crate::journal::millis;
use crate::run::{Run, attend};

/// Tries for one reply while the provider is not available.
const MAX_TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_mins(2);

impl Run {
    /// Asks until there is a reply; none if the time is used up. Provider errors use up no iterations.
    pub(super) async fn call(
        &mut self,
        request: &ModelRequest,
        responses: &mut Responses,
    ) -> Result<Option<Attempt>, RunError> {
        let text = request.text();
        durable::write_unsynced(&self.open_file("prompt.md"), text.as_bytes())?;
        let mut wait = FIRST_WAIT;
        let mut tries = 0;
        loop {
            tries += 1;
            let started = self.outside.clock.monotonic();
            self.tell_question(&text)?;
            let error = match self.listen(request).await? {
                None => return Ok(None),
                Some(Ok(reply)) => {
                    let waited = self.outside.clock.monotonic().saturating_sub(started);
                    return self.record(reply, responses, waited).map(Some);
                }
                Some(Err(error)) => error,
            };
            let retry = retry_in(&error, wait).filter(|_| tries < MAX_TRIES);
            self.tell_failure(&error, retry)?;
            let Some(pause) = retry else {
                return Err(error.into());
            };
            let sleeping = tokio::time::sleep(pause.min(self.time_left()));
            attend(&mut self.journal, &mut self.control, sleeping).await?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    fn tell_question(&mut self, text: &str) -> Result<(), RunError> {
        self.journal.append(Event::ModelAsked {
            iteration: self.state().iteration,
            attempt: self.attempts() + 1,
            prompt: Digest::of(text.as_bytes()),
            prompt_bytes: text.len(),
        })?;
        Ok(())
    }

    fn tell_failure(
        &mut self,
        error: &ModelError,
        retry: Option<Duration>,
    ) -> Result<(), RunError> {
        self.log_error(&error.to_string())?;
        self.journal.append(Event::ModelFailed {
            iteration: self.state().iteration,
            attempt: self.attempts(),
            error: error.to_string(),
            retry_in_ms: retry.map(millis),
        })?;
        Ok(())
    }

    /// Waits for an answer while listening to people, but not beyond the wall time.
    async fn listen(
        &mut self,
        request: &ModelRequest,
    ) -> Result<Option<Result<Reply, ModelError>>, RunError> {
        let model = self.outside.model.clone();
        let asking = tokio::time::timeout(self.time_left(), model.ask(request));
        let heard = attend(&mut self.journal, &mut self.control, asking).await?;
        if heard.is_err() {
            let (model, message) = (model.name().to_owned(), "the wall time is used up".into());
            let late = ModelError::Transient {
                model,
                status: 0,
                retry_after: None,
                message,
            };
            self.tell_failure(&late, None)?;
        }
        Ok(heard.ok())
    }

    /// Puts a reply on disk and charges it, before anything of it is read: the provider bills it even
    /// when it is unreadable. It is performed without known secrets, but with texts that only look like
    /// one: they may well belong to the code. On disk it is without both.
    fn record(
        &mut self,
        reply: Reply,
        responses: &mut Responses,
        waited: Duration,
    ) -> Result<Attempt, RunError> {
        let known_only = self.outside.redactor.looking_for(Shapes::None);
        let attempt = Attempt {
            attempt: self.attempts(),
            model: self.outside.model.name().to_owned(),
            reply: known_only.redact(beginning(&reply.text)).into_owned(),
            finish: reply.finish,
            usage: reply.usage,
            error: None,
        };
        responses.attempts.push(attempt.clone());
        self.write_responses(responses)?;
        self.journal.append(Event::ModelReplied {
            iteration: self.state().iteration,
            attempt: attempt.attempt,
            response: Digest::of(attempt.reply.as_bytes()),
            usage: reply.usage,
            cost_usd: price::cost(&self.outside.price, &reply.usage),
            duration_ms: millis(waited),
            source: reply.source,
        })?;
        self.warn_about_budgets()?;
        Ok(attempt)
    }
}

/// Returns as much of a reply as is kept: one byte more than may be read, so that it is still too long.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(MAX_REPLY_BYTES + 1);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    &text[..end]
}

fn retry_in(error: &ModelError, wait: Duration) -> Option<Duration> {
    match error {
        ModelError::Transient { retry_after, .. } => {
            Some(retry_after.unwrap_or(wait).min(LONGEST_WAIT))
        }
        ModelError::Unauthorized { .. } | ModelError::Broken { .. } => None,
    }
}

//! Asking the model: one question, one repair, and only what can be read is performed.

use ralph_core::action::{self, Action, Response};
use ralph_core::event::{ActionResult, IterationEvent, ModelEvent};
use ralph_core::ports::FinishReason;
use ralph_core::{budget, prompt};

use super::responses::{Attempt, Responses};
use crate::error::RunError;
use crate::run::Run;

/// A reply is asked for once more if it cannot be read.
const MAX_REPLIES: usize = 2;

/// What came of asking.
pub(crate) enum AskOutcome {
    /// A response that can be performed.
    Response(Response),
    /// Only replies that cannot be read.
    Unreadable,
    /// A budget is used up.
    OutOfBudget,
}

/// Reads a reply; one that was cut off is never performed, even if what is there can be read.
fn parse_reply(reply: &Attempt) -> Result<Response, String> {
    match reply.finish {
        FinishReason::Length => {
            Err("the reply was cut off at the output limit; answer with less".into())
        }
        FinishReason::Refused => Err(format!(
            "the model or its provider's filter refused to answer{}; answer with the actions only",
            quote_refusal(&reply.reply)
        )),
        FinishReason::Complete => action::parse(&reply.reply).map_err(|error| error.to_string()),
    }
}

/// How many characters of a refusal are shown.
const MAX_REFUSAL: usize = 300;

/// Returns the words of a model that refused to answer, for a message.
pub(crate) fn quote_refusal(reply: &str) -> String {
    let words: Vec<&str> = reply.split_whitespace().collect();
    let words: String = words.join(" ").chars().take(MAX_REFUSAL).collect();
    if words.is_empty() {
        return String::new();
    }
    format!(", it says: {words}")
}

impl Run {
    /// Asks the model, or takes the reply that was there before a restart. Costs are counted on the way.
    pub(crate) async fn ask_model(&mut self) -> Result<AskOutcome, RunError> {
        let mut responses = self.read_responses();
        if let Some(reply) = self.stored_reply(&responses)
            && let Some(response) = self.accept_or_reject(&reply, &mut responses)?
        {
            return Ok(AskOutcome::Response(response));
        }
        if self.has_accepted_reply() {
            return self.abandon_reply();
        }
        self.mark_messages_delivered()?;
        let first = self.build_request()?;
        let mut request = first.clone();
        while responses.attempts.len() < MAX_REPLIES {
            let last = responses.attempts.last();
            if let Some(Attempt {
                reply,
                error: Some(errors),
                ..
            }) = last
            {
                request = self.redact_request(prompt::build_repair(&first, reply, errors));
            }
            let limits = self.pinned.contract().limits();
            if budget::exhausted(&limits, &self.spent()).is_some() {
                return Ok(AskOutcome::OutOfBudget);
            }
            let Some(reply) = self.call_model(&request, &mut responses).await? else {
                return Ok(AskOutcome::OutOfBudget);
            };
            if let Some(response) = self.accept_or_reject(&reply, &mut responses)? {
                return Ok(AskOutcome::Response(response));
            }
        }
        Ok(AskOutcome::Unreadable)
    }

    /// Accepts a reply or rejects it, in the journal.
    fn accept_or_reject(
        &mut self,
        reply: &Attempt,
        responses: &mut Responses,
    ) -> Result<Option<Response>, RunError> {
        match parse_reply(reply) {
            Ok(response) => self
                .accept_reply(self.redact_displayed_text(response))
                .map(Some),
            Err(errors) => self.reject_reply(responses, errors).map(|()| None),
        }
    }

    /// Redacts the parts of a response that are only shown. Those that are performed stay as they are.
    fn redact_displayed_text(&self, mut response: Response) -> Response {
        let clean = |text: &mut String| *text = self.services.redactor.redact(text).into_owned();
        clean(&mut response.summary);
        for action in &mut response.actions {
            match action {
                Action::Rotate { reason }
                | Action::Pause { reason }
                | Action::StopSuccess { reason }
                | Action::StopFailure { reason } => clean(reason),
                Action::Run { .. }
                | Action::Patch { .. }
                | Action::Write { .. }
                | Action::Commit { .. } => {}
            }
        }
        response
    }

    fn accept_reply(&mut self, response: Response) -> Result<Response, RunError> {
        if self.has_accepted_reply() {
            return Ok(response);
        }
        let (summary, actions) = (response.summary.clone(), response.actions.len());
        self.log_activity(&format!("reply: {summary} ({actions} actions)"))?;
        let iteration = self.state().iteration;
        let repaired = response.repaired;
        self.journal.append(ModelEvent::ReplyAccepted {
            iteration,
            summary,
            actions,
            repaired,
        })?;
        Ok(response)
    }

    fn reject_reply(&mut self, responses: &mut Responses, errors: String) -> Result<(), RunError> {
        if let Some(last) = responses.attempts.last_mut() {
            last.error = Some(errors.clone());
        }
        self.write_responses(responses)?;
        self.log_error(&format!(
            "the reply could not be read, nothing of it was done: {errors}"
        ))?;
        let (iteration, attempt) = (self.state().iteration, self.model_attempts());
        self.journal.append(ModelEvent::ReplyRejected {
            iteration,
            attempt,
            errors,
        })?;
        Ok(())
    }

    fn has_accepted_reply(&self) -> bool {
        self.state().open.as_ref().is_some_and(|open| open.accepted)
    }

    /// Ends an iteration whose reply was begun and is not there any more: the actions of another
    /// reply must not continue it.
    fn abandon_reply(&mut self) -> Result<AskOutcome, RunError> {
        let why = "the reply that was interrupted cannot be read again, a fresh iteration follows";
        self.log_error(why)?;
        let pending = self
            .state()
            .open
            .as_ref()
            .and_then(|open| open.pending.clone());
        if let Some((index, _)) = pending {
            self.journal.append(IterationEvent::ActionFinished {
                iteration: self.state().iteration,
                index,
                action: "unknown".into(),
                label: why.into(),
                result: ActionResult::Interrupted,
                duration_ms: 0,
                tail: String::new(),
            })?;
        }
        Ok(AskOutcome::Unreadable)
    }

    pub(super) fn model_attempts(&self) -> u32 {
        self.state().open.as_ref().map_or(0, |open| open.attempts)
    }
}

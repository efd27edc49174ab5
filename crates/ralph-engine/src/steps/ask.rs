//! Asks the model: one question, one repair; only a valid reply is performed.

use ralph_core::action::{self, Action, Response};
use ralph_core::event::{ActionResult, IterationEvent, ModelEvent};
use ralph_core::ports::FinishReason;
use ralph_core::prompt;

use super::call::{CallOutcome, call_model};
use super::responses::{Attempt, Responses};
use super::responses::{read_responses, stored_reply, write_responses};
use super::snapshot::{build_request, redact_request};
use crate::error::RunError;
use crate::messages::mark_messages_delivered;
use crate::recorder::Recorder;
use crate::run::Run;

/// The most replies: an unreadable one is requested once more.
const MAX_REPLIES: usize = 2;

/// The outcome of asking the model.
pub(crate) enum AskOutcome {
    /// A response that can be performed.
    Response(Response),
    /// All replies were unreadable.
    Unreadable,
    /// A budget is used up.
    OutOfBudget,
    /// The user requested a fresh iteration during a call.
    Rotated,
}

/// Parses a reply; a truncated one is never performed, even if it can be parsed.
fn parse_reply(reply: &Attempt) -> Result<Response, String> {
    match reply.finish {
        FinishReason::Length => {
            Err("the reply was cut off at the output limit; send a shorter one".into())
        }
        FinishReason::Refused => Err(format!(
            "the model or its provider's filter refused to answer{}; answer with the actions only",
            quote_refusal(&reply.reply)
        )),
        FinishReason::Complete => action::parse(&reply.reply).map_err(|error| error.to_string()),
    }
}

/// The most characters of a refusal in a message.
const MAX_REFUSAL: usize = 300;

/// Returns the text of a model that refused to answer, for a message.
pub(crate) fn quote_refusal(reply: &str) -> String {
    let words: Vec<&str> = reply.split_whitespace().collect();
    let text: String = words.join(" ").chars().take(MAX_REFUSAL).collect();
    if text.is_empty() {
        return String::new();
    }
    format!(", it says: {text}")
}

/// Asks the model, or loads the reply from before a restart. Costs are charged on the way.
pub(crate) async fn ask_model(run: &mut Run) -> Result<AskOutcome, RunError> {
    let mut responses = read_responses(&mut run.recorder)?;
    if let Some(reply) = stored_reply(&run.recorder, &responses)
        && let Some(response) = accept_or_reject(&mut run.recorder, &reply, &mut responses)?
    {
        return Ok(AskOutcome::Response(response));
    }
    if has_accepted_reply(&run.recorder) {
        return abandon_reply(&mut run.recorder);
    }
    mark_messages_delivered(&mut run.recorder)?;
    let first = build_request(&run.recorder, &run.bench, &run.pinned)?;
    let mut request = first.clone();
    while responses.attempts.len() < MAX_REPLIES {
        let last = responses.attempts.last();
        if let Some(Attempt {
            reply,
            error: Some(errors),
            ..
        }) = last
        {
            request = redact_request(&run.recorder, prompt::build_repair(&first, reply, errors));
        }
        if run.recorder.exhausted_budget().is_some() {
            return Ok(AskOutcome::OutOfBudget);
        }
        let reply = match call_model(run, &request, &mut responses).await? {
            CallOutcome::Reply(reply) => reply,
            CallOutcome::OutOfBudget => return Ok(AskOutcome::OutOfBudget),
            CallOutcome::Rotated => return Ok(AskOutcome::Rotated),
        };
        if let Some(response) = accept_or_reject(&mut run.recorder, &reply, &mut responses)? {
            return Ok(AskOutcome::Response(response));
        }
    }
    Ok(AskOutcome::Unreadable)
}

/// Records whether a reply is accepted or rejected.
fn accept_or_reject(
    recorder: &mut Recorder,
    reply: &Attempt,
    responses: &mut Responses,
) -> Result<Option<Response>, RunError> {
    match parse_reply(reply) {
        Ok(response) => {
            let response = redact_displayed_text(recorder, response);
            accept_reply(recorder, response).map(Some)
        }
        Err(errors) => reject_reply(recorder, responses, errors).map(|()| None),
    }
}

/// Redacts the parts of a response that are only displayed. The performed parts stay unchanged.
fn redact_displayed_text(recorder: &Recorder, mut response: Response) -> Response {
    let clean = |text: &mut String| *text = recorder.redactor.redact(text).into_owned();
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

fn accept_reply(recorder: &mut Recorder, response: Response) -> Result<Response, RunError> {
    if has_accepted_reply(recorder) {
        return Ok(response);
    }
    let (summary, actions) = (response.summary.clone(), response.actions.len());
    let noun = if actions == 1 { "action" } else { "actions" };
    recorder.log_activity(&format!("reply: {summary} ({actions} {noun})"))?;
    let iteration = recorder.state().iteration;
    let repaired = response.repaired;
    recorder.append(ModelEvent::ReplyAccepted {
        iteration,
        summary,
        actions,
        repaired,
    })?;
    Ok(response)
}

fn reject_reply(
    recorder: &mut Recorder,
    responses: &mut Responses,
    errors: String,
) -> Result<(), RunError> {
    if let Some(last) = responses.attempts.last_mut() {
        last.error = Some(errors.clone());
    }
    write_responses(recorder, responses)?;
    recorder.log_error(&format!(
        "the reply is invalid, so none of it was performed: {errors}"
    ))?;
    let (iteration, attempt) = (recorder.state().iteration, model_attempts(recorder));
    recorder.append(ModelEvent::ReplyRejected {
        iteration,
        attempt,
        errors,
    })?;
    Ok(())
}

fn has_accepted_reply(recorder: &Recorder) -> bool {
    recorder
        .state()
        .open
        .as_ref()
        .is_some_and(|open| open.accepted)
}

/// Ends an iteration whose partly performed reply is lost: the actions of another reply must not
/// continue it.
fn abandon_reply(recorder: &mut Recorder) -> Result<AskOutcome, RunError> {
    let why = "the interrupted reply can no longer be read; a fresh iteration follows";
    recorder.log_error(why)?;
    let pending = recorder
        .state()
        .open
        .as_ref()
        .and_then(|open| open.pending.clone());
    if let Some((index, _)) = pending {
        recorder.append(IterationEvent::ActionFinished {
            iteration: recorder.state().iteration,
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

/// Returns the number of requests to the model in the open iteration.
pub(super) fn model_attempts(recorder: &Recorder) -> u32 {
    let open = recorder.state().open.as_ref();
    open.map_or(0, |open| open.attempts)
}

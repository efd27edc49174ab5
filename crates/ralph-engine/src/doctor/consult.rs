//! Asks the doctor: one question, one repair, every call charged. A failing doctor does not end a
//! run; the failure is reported, and the run continues without it.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget::Budget;
use ralph_core::doctor::{self, DoctorReportHeader, DoctorTrigger};
use ralph_core::event::{DoctorEvent, Event};
use ralph_core::id::Digest;
use ralph_core::ports::{FinishReason, Model, ModelError, ModelReply, ModelRequest, TokenUsage};
use ralph_core::price::{self, Price};

use super::prompt_input::build_prompt_input;
use crate::contract::PinnedTask;
use crate::controls::Controls;
use crate::durable;
use crate::error::RunError;
use crate::journal::millis;
use crate::recorder::Recorder;
use crate::redaction;
use crate::reservation::{ReservedRequest, reserve_request};
use crate::run::attend;
use crate::running_time;
use crate::services::Services;
use crate::steps::quote_refusal;
use crate::steps::waiting::random_jitter;

/// The most replies: an unreadable one is requested once more.
const MAX_REPLIES: u32 = 2;
/// The most attempts for one reply while the provider is not available.
const MAX_CALL_ATTEMPTS: u32 = 3;
const MAX_RETRY_DELAY: Duration = Duration::from_mins(1);
/// The timeout of a reply.
const REPLY_TIMEOUT: Duration = Duration::from_mins(15);
/// Bytes of a prompt per token, for an estimate.
const BYTES_PER_TOKEN: usize = 4;

/// The model of the doctor, and its price.
struct DoctorModel {
    model: Arc<dyn Model>,
    price: Price,
    profile: Option<String>,
}

/// The question to the doctor.
struct DoctorQuestion<'a> {
    number: u32,
    trigger: DoctorTrigger,
    request: &'a ModelRequest,
}

/// Asks the doctor and stores its report. Returns the report's number; none if there is no report.
pub(crate) async fn consult_doctor(
    recorder: &mut Recorder,
    controls: &mut Controls,
    services: &Services,
    pinned: &PinnedTask,
    trigger: DoctorTrigger,
) -> Result<Option<u32>, RunError> {
    let doctor = choose_doctor_model(recorder, services, pinned)?;
    charge_abandoned(recorder, &doctor.price)?;
    let number = recorder.state().doctor.current();
    recorder.log_activity(&format!(
        "asking the doctor ({}): `{}`",
        trigger.description(),
        doctor.model.name()
    ))?;
    let first = redact_request(
        recorder,
        doctor::build(&build_prompt_input(recorder, pinned)?),
    );
    let mut request = first.clone();
    for reply_number in 1..=MAX_REPLIES {
        let question = DoctorQuestion {
            number,
            trigger,
            request: &request,
        };
        let Some(reply) = ask_doctor(recorder, controls, services, &doctor, &question).await?
        else {
            return Ok(None);
        };
        let errors = match parse_report(&reply) {
            Ok(report) => {
                let about = DoctorReportHeader {
                    number,
                    iteration: recorder.state().iteration,
                    trigger,
                    model: doctor.model.name(),
                };
                return write_report(recorder, about, report).map(Some);
            }
            Err(errors) => errors,
        };
        let why = format!("its reply is invalid: {errors}");
        record_doctor_failure(recorder, number, &why, reply_number == MAX_REPLIES)?;
        request = doctor::build_repair(&first, &reply.text, &errors);
    }
    Ok(None)
}

fn redact_request(recorder: &Recorder, request: ModelRequest) -> ModelRequest {
    ModelRequest {
        system: request.system,
        user: recorder.redactor.redact(&request.user).into_owned(),
        schema: request.schema,
        max_output_tokens: request.max_output_tokens,
    }
}

/// Chooses the task's profile for the doctor, the profile marked for it, the fallback, or the run's
/// own.
fn choose_doctor_model(
    recorder: &mut Recorder,
    services: &Services,
    pinned: &PinnedTask,
) -> Result<DoctorModel, RunError> {
    let wanted = services.doctor_profile(pinned.contract());
    if let Some(profile) = wanted.map(str::to_owned) {
        match services.model_for_profile(&profile, recorder.state()) {
            Ok(chosen) => {
                return Ok(DoctorModel {
                    model: chosen.model,
                    price: chosen.price,
                    profile: Some(profile),
                });
            }
            Err(why) => recorder.log_error(&format!(
                "the doctor's profile `{profile}` cannot be used, asking the run's own: {why}"
            ))?,
        }
    }
    Ok(DoctorModel {
        model: services.model.clone(),
        price: services.price,
        profile: None,
    })
}

/// Charges a call whose reply never arrived: the provider bills it, too.
fn charge_abandoned(recorder: &mut Recorder, price: &Price) -> Result<(), RunError> {
    let Some((_, prompt_bytes)) = recorder.state().doctor.pending else {
        return Ok(());
    };
    let estimate = TokenUsage {
        input_tokens: (prompt_bytes / BYTES_PER_TOKEN) as u64,
        ..TokenUsage::default()
    };
    let reserved = recorder.state().doctor.reserved;
    record_abandoned_call(recorder, reserved.unwrap_or(estimate), price)
}

/// Charges a call that did not complete.
fn record_abandoned_call(
    recorder: &mut Recorder,
    usage: TokenUsage,
    price: &Price,
) -> Result<(), RunError> {
    let event = Event::Doctor(DoctorEvent::DoctorAbandoned {
        number: recorder.state().doctor.number,
        attempt: recorder.state().doctor.attempt,
        usage,
        cost_usd: price::cost(price, &usage),
    });
    recorder.append(event)?;
    Ok(())
}

/// Asks until there is a reply; none if a budget is used up or no further attempt helps.
async fn ask_doctor(
    recorder: &mut Recorder,
    controls: &mut Controls,
    services: &Services,
    doctor: &DoctorModel,
    question: &DoctorQuestion<'_>,
) -> Result<Option<ModelReply>, RunError> {
    for attempt in 1..=MAX_CALL_ATTEMPTS {
        if let Some(budget) = recorder.exhausted_budget() {
            let why = format!("the budget `{}` is used up", budget.key());
            record_doctor_failure(recorder, question.number, &why, true)?;
            return Ok(None);
        }
        let reserved = match reserve_doctor_call(recorder, doctor, question.request) {
            Ok(reserved) => reserved,
            Err(budget) => {
                let why = format!("the budget `{}` is too small for the call", budget.key());
                record_doctor_failure(recorder, question.number, &why, true)?;
                return Ok(None);
            }
        };
        let started = recorder.clock.monotonic();
        record_question(recorder, doctor, question, reserved.usage)?;
        let asking = doctor.model.ask_once(&reserved.request);
        let clock = recorder.clock.clone();
        let asking =
            running_time::timeout(&*clock, recorder.time_left().min(REPLY_TIMEOUT), asking);
        let result = attend(&mut recorder.journal, controls, asking).await?;
        let error = match result {
            Ok(Ok(reply)) => {
                let waited = recorder.clock.monotonic().saturating_sub(started);
                record_doctor_reply(recorder, services, doctor, question.number, &reply, waited)?;
                return Ok(Some(reply));
            }
            Ok(Err(error)) => error,
            Err(_) => {
                charge_abandoned(recorder, &doctor.price)?;
                record_doctor_failure(recorder, question.number, "it did not reply in time", true)?;
                return Ok(None);
            }
        };
        if let ModelError::CutOff { usage, .. } = &error {
            record_abandoned_call(recorder, *usage, &doctor.price)?;
        }
        let wait = services.outage.delay(attempt, random_jitter());
        let retry = retry_delay(&error, wait).filter(|_| attempt < MAX_CALL_ATTEMPTS);
        record_doctor_failure(
            recorder,
            question.number,
            &error.to_string(),
            retry.is_none(),
        )?;
        let Some(pause) = retry else {
            return Ok(None);
        };
        let sleeping = running_time::sleep(&*clock, pause);
        attend(&mut recorder.journal, controls, sleeping).await?;
    }
    Ok(None)
}

fn reserve_doctor_call(
    recorder: &Recorder,
    doctor: &DoctorModel,
    request: &ModelRequest,
) -> Result<ReservedRequest, Budget> {
    let spent = recorder.state().spent();
    reserve_request(
        &*doctor.model,
        &doctor.price,
        recorder.limits(),
        &spent,
        request,
    )
}

fn record_question(
    recorder: &mut Recorder,
    doctor: &DoctorModel,
    question: &DoctorQuestion<'_>,
    reserved: Option<TokenUsage>,
) -> Result<(), RunError> {
    let text = question.request.text();
    let number = question.number;
    let dir = recorder.dir.doctor(number);
    durable::create_dir(&dir)?;
    durable::write_unsynced(&dir.join("prompt.md"), text.as_bytes())?;
    recorder.append(DoctorEvent::DoctorAsked {
        number,
        attempt: recorder.state().doctor.attempt + 1,
        trigger: question.trigger,
        profile: doctor.profile.clone(),
        prompt: Digest::compute(text.as_bytes()),
        prompt_bytes: text.len(),
        reserved,
    })?;
    Ok(())
}

/// Stores and charges a reply before it is parsed.
fn record_doctor_reply(
    recorder: &mut Recorder,
    services: &Services,
    doctor: &DoctorModel,
    number: u32,
    reply: &ModelReply,
    waited: Duration,
) -> Result<(), RunError> {
    let attempt = recorder.state().doctor.attempt;
    let path = recorder
        .dir
        .doctor(number)
        .join(format!("reply-{attempt}.json"));
    let value = serde_json::json!({
        "attempt": attempt,
        "model": doctor.model.name(),
        "answered_by": reply.answered_by,
        "reply": reply.text,
        "finish": reply.finish,
        "usage": reply.usage,
    });
    let text = redaction::to_pretty(&recorder.redactor, &value, &path)?;
    durable::write(&path, &text)?;
    recorder.append(DoctorEvent::DoctorReplied {
        number,
        attempt,
        response: Digest::compute(&text),
        usage: reply.usage,
        cost_usd: reply
            .billed
            .unwrap_or_else(|| price::cost(&doctor.price, &reply.usage)),
        duration_ms: millis(waited),
        // Only the positions in the run's own script are counted.
        source: reply
            .source
            .clone()
            .filter(|_| Arc::ptr_eq(&doctor.model, &services.model)),
    })?;
    Ok(())
}

fn record_doctor_failure(
    recorder: &mut Recorder,
    number: u32,
    why: &str,
    given_up: bool,
) -> Result<(), RunError> {
    recorder.log_error(&format!("the doctor failed: {why}"))?;
    recorder.append(DoctorEvent::DoctorFailed {
        number,
        attempt: recorder.state().doctor.attempt,
        why: why.to_owned(),
        given_up,
    })?;
    Ok(())
}

/// Writes a report. The file is written first, so that it contains every report in the journal.
fn write_report(
    recorder: &mut Recorder,
    about: DoctorReportHeader<'_>,
    report: doctor::DoctorReport,
) -> Result<u32, RunError> {
    let old = recorder.files.text("diagnostics.md")?;
    let text = doctor::prepend_report(&old, about, &report);
    recorder.files.replace("diagnostics.md", text.as_bytes())?;
    let (number, iteration) = (about.number, about.iteration);
    recorder.log_activity(&format!(
        "report {number} of the doctor: {}",
        report.summary
    ))?;
    recorder.append(DoctorEvent::DoctorReported {
        number,
        iteration,
        report: Box::new(report),
    })?;
    Ok(number)
}

fn parse_report(reply: &ModelReply) -> Result<doctor::DoctorReport, String> {
    match reply.finish {
        FinishReason::Length => {
            Err("the reply was cut off at the output limit; send a shorter one".into())
        }
        FinishReason::Refused => Err(format!(
            "the model or its provider's filter refused to answer{}; answer with the report only",
            quote_refusal(&reply.text)
        )),
        FinishReason::Complete => doctor::parse(&reply.text),
    }
}

fn retry_delay(error: &ModelError, wait: Duration) -> Option<Duration> {
    match error {
        // A provider can ask for a longer delay, not for a shorter one.
        ModelError::Transient { retry_after, .. } => Some(
            retry_after
                .unwrap_or_default()
                .max(wait)
                .min(MAX_RETRY_DELAY),
        ),
        ModelError::CutOff { .. } => Some(wait.min(MAX_RETRY_DELAY)),
        // Another attempt would fail in the same way, or only after a long wait.
        ModelError::Unauthorized { .. }
        | ModelError::Broken { .. }
        | ModelError::QuotaUsedUp { .. } => None,
    }
}

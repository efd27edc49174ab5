//! Asks the doctor: one question, one repair, every call charged. A doctor that cannot help does not
//! break a run; that is told, and the run goes on without.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget::Budget;
use ralph_core::doctor::{self, About, Trigger};
use ralph_core::event::Event;
use ralph_core::id::Digest;
use ralph_core::ports::{Finish, Model, ModelError, ModelRequest, Reply, Usage};
use ralph_core::price::{self, Price};

use crate::desk::Desk;
use crate::durable;
use crate::error::RunError;
use crate::journal::millis;
use crate::redaction;
use crate::reservation::{Reserved, reserve};
use crate::run::attend;
use crate::running_time;
use crate::steps::said;
use crate::steps::waiting::chance;

/// A reply is asked for once more if it cannot be read.
const MAX_READINGS: u32 = 2;
/// Tries for one reply while the provider is not available.
const MAX_TRIES: u32 = 3;
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(15);
/// How many bytes of a prompt make a token, where nobody has counted.
const BYTES_PER_TOKEN: usize = 4;

/// Who answers, and for how much.
struct Doctor {
    model: Arc<dyn Model>,
    price: Price,
    profile: Option<String>,
}

/// What is being asked.
struct Question<'a> {
    number: u32,
    trigger: Trigger,
    request: &'a ModelRequest,
}

impl Desk<'_> {
    /// Asks the doctor and writes its report down. Returns the report's number; none if there is none.
    pub(crate) async fn consult(&mut self, trigger: Trigger) -> Result<Option<u32>, RunError> {
        let doctor = self.doctor()?;
        self.charge_abandoned(&doctor.price)?;
        let number = self.state().doctor.current();
        self.log_activity(&format!(
            "the doctor is asked ({}): `{}`",
            trigger.words(),
            doctor.model.name()
        ))?;
        let first = self.redacted(doctor::build(&self.chart()?));
        let mut request = first.clone();
        for reading in 1..=MAX_READINGS {
            let question = Question {
                number,
                trigger,
                request: &request,
            };
            let Some(reply) = self.ask_doctor(&doctor, &question).await? else {
                return Ok(None);
            };
            let errors = match read(&reply) {
                Ok(report) => {
                    let about = About {
                        number,
                        iteration: self.state().iteration,
                        trigger,
                        model: doctor.model.name(),
                    };
                    return self.write_report(about, report).map(Some);
                }
                Err(errors) => errors,
            };
            let why = format!("its reply cannot be read: {errors}");
            self.tell_failure(number, &why, reading == MAX_READINGS)?;
            request = doctor::build_repair(&first, &reply.text, &errors);
        }
        Ok(None)
    }

    fn redacted(&self, request: ModelRequest) -> ModelRequest {
        ModelRequest {
            system: request.system,
            user: self.outside.redactor.redact(&request.user).into_owned(),
            schema: request.schema,
            max_output_tokens: request.max_output_tokens,
        }
    }

    /// The task's own profile for it, the one that is marked for it, the fallback, the run's own.
    fn doctor(&mut self) -> Result<Doctor, RunError> {
        let contract = self.pinned.contract();
        let wanted = doctor::profile(
            contract.doctor_profile.as_deref(),
            self.outside.profiles.doctor.as_deref(),
            contract.model_profile_fallback.as_deref(),
        );
        if let Some(profile) = wanted.map(str::to_owned) {
            match self.outside.model_of(&profile, self.state()) {
                Ok(chosen) => {
                    return Ok(Doctor {
                        model: chosen.model,
                        price: chosen.price,
                        profile: Some(profile),
                    });
                }
                Err(why) => self.log_error(&format!(
                    "the doctor's profile `{profile}` cannot be used, the run's own is asked: {why}"
                ))?,
            }
        }
        Ok(Doctor {
            model: self.outside.model.clone(),
            price: self.outside.price,
            profile: None,
        })
    }

    /// A provider bills a call whose answer nobody heard, too.
    fn charge_abandoned(&mut self, price: &Price) -> Result<(), RunError> {
        let Some((_, prompt_bytes)) = self.state().doctor.waiting else {
            return Ok(());
        };
        let estimate = Usage {
            input_tokens: (prompt_bytes / BYTES_PER_TOKEN) as u64,
            ..Usage::default()
        };
        let reserved = self.state().doctor.reserved;
        self.charge(reserved.unwrap_or(estimate), price)
    }

    /// Charges a call that did not come to its end.
    fn charge(&mut self, usage: Usage, price: &Price) -> Result<(), RunError> {
        let event = Event::DoctorAbandoned {
            number: self.state().doctor.number,
            attempt: self.state().doctor.attempt,
            usage,
            cost_usd: price::cost(price, &usage),
        };
        self.journal.append(event)?;
        Ok(())
    }

    /// Asks until there is a reply; none if it was given up.
    async fn ask_doctor(
        &mut self,
        doctor: &Doctor,
        question: &Question<'_>,
    ) -> Result<Option<Reply>, RunError> {
        for tries in 1..=MAX_TRIES {
            if let Some(budget) = self.used_up() {
                let why = format!("the budget `{}` is used up", budget.key());
                self.tell_failure(question.number, &why, true)?;
                return Ok(None);
            }
            let reserved = match self.reserve(doctor, question.request) {
                Ok(reserved) => reserved,
                Err(budget) => {
                    let why = format!("the budget `{}` does not pay for it", budget.key());
                    self.tell_failure(question.number, &why, true)?;
                    return Ok(None);
                }
            };
            let started = self.outside.clock.monotonic();
            self.tell_question(doctor, question, reserved.usage)?;
            let asking = doctor.model.ask(&reserved.request);
            let clock = self.outside.clock.clone();
            let asking = running_time::timeout(&*clock, self.time_left(PATIENCE), asking);
            let heard = attend(self.journal, self.control, asking).await?;
            let error = match heard {
                Ok(Ok(reply)) => {
                    let waited = self.outside.clock.monotonic().saturating_sub(started);
                    self.record(doctor, question.number, &reply, waited)?;
                    return Ok(Some(reply));
                }
                Ok(Err(error)) => error,
                Err(_) => {
                    self.charge_abandoned(&doctor.price)?;
                    self.tell_failure(question.number, "it did not answer in time", true)?;
                    return Ok(None);
                }
            };
            if let ModelError::CutOff { usage, .. } = &error {
                self.charge(*usage, &doctor.price)?;
            }
            let wait = self.outside.outage.delay(tries, chance());
            let retry = retry_in(&error, wait).filter(|_| tries < MAX_TRIES);
            self.tell_failure(question.number, &error.to_string(), retry.is_none())?;
            let Some(pause) = retry else {
                return Ok(None);
            };
            let sleeping = running_time::sleep(&*clock, pause);
            attend(self.journal, self.control, sleeping).await?;
        }
        Ok(None)
    }

    fn reserve(&self, doctor: &Doctor, request: &ModelRequest) -> Result<Reserved, Budget> {
        let limits = self.pinned.contract().limits();
        let spent = self.state().spent();
        reserve(&*doctor.model, &doctor.price, &limits, &spent, request)
    }

    fn tell_question(
        &mut self,
        doctor: &Doctor,
        question: &Question<'_>,
        reserved: Option<Usage>,
    ) -> Result<(), RunError> {
        let text = question.request.text();
        let number = question.number;
        let dir = self.dir.doctor(number);
        durable::make_dir(&dir)?;
        durable::write_unsynced(&dir.join("prompt.md"), text.as_bytes())?;
        self.journal.append(Event::DoctorAsked {
            number,
            attempt: self.state().doctor.attempt + 1,
            trigger: question.trigger,
            profile: doctor.profile.clone(),
            prompt: Digest::of(text.as_bytes()),
            prompt_bytes: text.len(),
            reserved,
        })?;
        Ok(())
    }

    /// Puts a reply on disk and charges it, before anything of it is read.
    fn record(
        &mut self,
        doctor: &Doctor,
        number: u32,
        reply: &Reply,
        waited: Duration,
    ) -> Result<(), RunError> {
        let attempt = self.state().doctor.attempt;
        let path = self
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
        let text = redaction::to_pretty(&self.outside.redactor, &value, &path)?;
        durable::write(&path, &text)?;
        self.journal.append(Event::DoctorReplied {
            number,
            attempt,
            response: Digest::of(&text),
            usage: reply.usage,
            cost_usd: reply
                .billed
                .unwrap_or_else(|| price::cost(&doctor.price, &reply.usage)),
            duration_ms: millis(waited),
            // Only the places of the run's own script are counted.
            source: reply
                .source
                .clone()
                .filter(|_| Arc::ptr_eq(&doctor.model, &self.outside.model)),
        })?;
        Ok(())
    }

    fn tell_failure(&mut self, number: u32, why: &str, given_up: bool) -> Result<(), RunError> {
        self.log_error(&format!("the doctor could not help: {why}"))?;
        self.journal.append(Event::DoctorFailed {
            number,
            attempt: self.state().doctor.attempt,
            why: why.to_owned(),
            given_up,
        })?;
        Ok(())
    }

    /// The file first: a report that the journal knows can be read by people.
    fn write_report(&mut self, about: About<'_>, report: doctor::Report) -> Result<u32, RunError> {
        let old = self.files.text("diagnostics.md")?;
        let text = doctor::add_report(&old, about, &report);
        self.files.adopt("diagnostics.md", text.as_bytes())?;
        let (number, iteration) = (about.number, about.iteration);
        self.log_activity(&format!(
            "report {number} of the doctor: {}",
            report.summary
        ))?;
        self.journal.append(Event::DoctorReported {
            number,
            iteration,
            report: Box::new(report),
        })?;
        Ok(number)
    }
}

fn read(reply: &Reply) -> Result<doctor::Report, String> {
    match reply.finish {
        Finish::Length => Err("the reply was cut off at the output limit; answer with less".into()),
        Finish::Refused => Err(format!(
            "the model or its provider's filter refused to answer{}; answer with the report only",
            said(&reply.text)
        )),
        Finish::Complete => doctor::parse(&reply.text),
    }
}

fn retry_in(error: &ModelError, wait: Duration) -> Option<Duration> {
    match error {
        // A provider can ask for a longer delay, not for a shorter one.
        ModelError::Transient { retry_after, .. } => {
            Some(retry_after.unwrap_or_default().max(wait).min(LONGEST_WAIT))
        }
        ModelError::CutOff { .. } => Some(wait.min(LONGEST_WAIT)),
        // The run does not wait for the doctor.
        ModelError::Unauthorized { .. }
        | ModelError::Broken { .. }
        | ModelError::QuotaUsedUp { .. } => None,
    }
}

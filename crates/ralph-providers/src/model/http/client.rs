//! A model behind an HTTP API: one question, one answer.

use std::error::Error as _;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::money::Usd;
use ralph_core::ports::{Finish, Model, ModelError, ModelRequest, Reply, Usage};
use ralph_core::price;
use ralph_core::profile::{ReplyFormat, Wire};
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::answer::{Answer, Sent, dollars};
use super::parameters::Parameters;
use super::refusal::{Refusal, one_line};
use super::settings::{HttpSettings, SettingsError};
use super::sse::Decoder;
use super::wire::{self, Trouble};
use super::{address, connection, waits};

/// How often a question is put differently because a parameter was refused.
const MAX_ADAPTATIONS: usize = 4;
/// How much of a refusal is read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// How much of an answer is read, with everything around its text.
const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;

/// The output limit of models whose own is not known.
const DEFAULT_OUTPUT_LIMIT: u64 = 16 * 1024;

/// A model behind an HTTP API.
pub struct HttpModel {
    settings: HttpSettings,
    client: Client,
    url: Url,
    /// What this model takes, as far as it has been found out.
    parameters: Mutex<Parameters>,
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

/// Why there is no whole answer.
enum Failure {
    /// The provider said no.
    Refused(Refusal),
    /// It said something else, or nothing.
    Error(ModelError),
}

impl HttpModel {
    /// Makes a model. Nothing is sent until it is asked.
    pub fn new(settings: HttpSettings) -> Result<Self, SettingsError> {
        Ok(Self {
            client: connection::client(&settings)?,
            url: address::of(&settings)?,
            parameters: Mutex::new(Parameters::of(&settings)),
            settings,
        })
    }

    /// Returns the host that it asks.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    fn name(&self) -> String {
        self.settings.name.clone()
    }

    fn parameters(&self) -> Parameters {
        self.parameters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Puts the question differently next time; false if that would not help.
    fn adapt(&self, refusal: &Refusal) -> bool {
        let mut parameters = self
            .parameters
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        parameters.adapt(&refusal.message, self.settings.endpoint.wire)
    }

    async fn attempt(&self, request: &ModelRequest) -> Result<Reply, Failure> {
        let asking = Asking {
            model: self,
            sent: sent(request),
            deadline: Instant::now() + self.settings.timeouts.total,
        };
        let response = asking.send(request).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(self.moved(&response));
        }
        if !status.is_success() {
            return Err(asking.refused(response).await);
        }
        asking.read(response).await
    }

    fn moved(&self, response: &Response) -> Failure {
        let location = response.headers().get(LOCATION);
        let target = location
            .and_then(|value| value.to_str().ok())
            .and_then(|text| self.url.join(text).ok());
        let host = target.as_ref().and_then(Url::host_str).unwrap_or("nowhere");
        let message = format!(
            "status {}, it sends us on to `{host}`, where the credential does not belong",
            response.status().as_u16()
        );
        Failure::Error(self.broken(message))
    }

    fn broken(&self, message: String) -> ModelError {
        ModelError::Broken {
            model: self.name(),
            message,
        }
    }

    /// Hides the key where a provider repeats it.
    fn hidden(&self, text: &str) -> String {
        let key = self.settings.credential.as_ref();
        match key.map(|key| key.secret.expose().trim()) {
            Some(key) if !key.is_empty() => text.replace(key, "***"),
            Some(_) | None => text.to_owned(),
        }
    }
}

/// One question under way.
struct Asking<'m> {
    model: &'m HttpModel,
    sent: Sent,
    deadline: Instant,
}

impl Asking<'_> {
    async fn send(&self, request: &ModelRequest) -> Result<Response, Failure> {
        let HttpModel {
            settings,
            client,
            url,
            ..
        } = self.model;
        let mut parameters = self.model.parameters();
        if request.schema.is_none() && parameters.format == ReplyFormat::Schema {
            // Nothing to hold the model to; what JSON is wanted stands in the prompt.
            parameters.format = ReplyFormat::Json;
        }
        if let Some(most) = request.max_output_tokens {
            let own = parameters.output_limit.unwrap_or(most);
            parameters.output_limit = Some(own.min(most));
        }
        let endpoint = &settings.endpoint;
        let body = wire::body(endpoint.wire, &endpoint.model, request, &parameters);
        let request = client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        let sent = timeout_at(self.first_byte_by(), request.send()).await;
        match sent {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() => Err(self.unreachable(&error)),
            // It may have been heard, so it may be billed.
            Ok(Err(error)) => Err(self.cut_off(&Answer::default(), reason(error))),
            Err(_) => Err(self.cut_off(
                &Answer::default(),
                too_late("no answer began", settings.timeouts.first_byte),
            )),
        }
    }

    fn first_byte_by(&self) -> Instant {
        let total = self.model.settings.timeouts.total;
        let begun = self.deadline - total;
        (begun + self.model.settings.timeouts.first_byte).min(self.deadline)
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let cause = deepest(error);
        Failure::Error(ModelError::Transient {
            model: self.model.name(),
            status: 0,
            retry_after: None,
            message: one_line(&format!("cannot reach `{}`: {cause}", self.model.host())),
        })
    }

    fn cut_off(&self, answer: &Answer, message: String) -> Failure {
        Failure::Error(ModelError::CutOff {
            model: self.model.name(),
            message,
            partial: answer.text.clone(),
            usage: answer.usage_until_now(&self.sent),
        })
    }

    async fn refused(&self, mut response: Response) -> Failure {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        while body.len() < MAX_REFUSAL_BYTES
            && let Ok(Ok(Some(piece))) = timeout_at(self.next_by(), response.chunk()).await
        {
            body.extend_from_slice(&piece);
        }
        let text = self.model.hidden(&String::from_utf8_lossy(&body));
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let now = self.model.settings.clock.now();
        Failure::Refused(Refusal::of(status, &text, waits::of(&headers, &value, now)))
    }

    fn next_by(&self) -> Instant {
        (Instant::now() + self.model.settings.timeouts.idle).min(self.deadline)
    }

    /// Reads an answer, whichever way it comes.
    async fn read(&self, response: Response) -> Result<Reply, Failure> {
        let headers = response.headers().clone();
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_lowercase();
        let mut answer = Answer::default();
        if kind.starts_with("text/event-stream") {
            self.read_stream(response, &mut answer).await?;
        } else {
            self.read_whole(response, &mut answer).await?;
        }
        let mut usage = answer.usage(&self.sent);
        let mut finish = answer.finish.unwrap_or(Finish::Complete);
        if answer.is_too_long() {
            usage = answer.usage_until_now(&self.sent);
            finish = Finish::Length;
        }
        Ok(Reply {
            billed: self.billed(&answer, &headers),
            text: answer.text,
            usage,
            finish,
            source: None,
            answered_by: answer.model,
        })
    }

    /// Gateways know what a call has cost, also of models that we have no price of.
    fn billed(&self, answer: &Answer, headers: &HeaderMap) -> Option<Usd> {
        let told = || {
            let header = headers.get("x-litellm-response-cost")?;
            dollars(header.to_str().ok()?.parse().ok()?)
        };
        match self.model.settings.endpoint.provider.as_str() {
            "litellm_proxy" => answer.counted.billed.or_else(told),
            "openrouter" => answer.counted.billed,
            _ => None,
        }
    }

    async fn read_stream(&self, mut body: Response, answer: &mut Answer) -> Result<(), Failure> {
        let mut decoder = Decoder::default();
        let mut bytes = 0;
        let mut by = self.first_byte_by();
        loop {
            let piece = match self.piece(&mut body, by, answer).await {
                Ok(Some(piece)) => piece,
                // Whatever happens after the end of an answer does not change it.
                Ok(None) | Err(_) if answer.is_complete => return Ok(()),
                Ok(None) => break,
                Err(failure) => return Err(failure),
            };
            bytes += piece.len();
            let Ok(events) = decoder.push(&piece) else {
                return Err(self.cut_off(answer, "an event of it never ended".into()));
            };
            for event in events {
                self.take(wire::read_event(self.wire(), &event, answer), answer)?;
            }
            // Gemini may count after the end; others have said everything by then.
            let is_over = self.wire() != Wire::Gemini || answer.counted.output.is_some();
            if answer.is_complete && is_over || answer.is_too_long() {
                return Ok(());
            }
            if bytes > MAX_ANSWER_BYTES {
                return Err(
                    self.cut_off(answer, format!("it has more than {MAX_ANSWER_BYTES} bytes"))
                );
            }
            by = self.next_by();
        }
        Err(self.cut_off(answer, "the stream ended before the answer did".into()))
    }

    async fn read_whole(&self, mut body: Response, answer: &mut Answer) -> Result<(), Failure> {
        let mut text = Vec::new();
        let mut by = self.first_byte_by();
        while let Some(piece) = self.piece(&mut body, by, answer).await? {
            text.extend_from_slice(&piece);
            if text.len() > MAX_ANSWER_BYTES / 16 {
                let limit = MAX_ANSWER_BYTES / 16;
                return Err(self.cut_off(answer, format!("it has more than {limit} bytes")));
            }
            by = self.next_by();
        }
        match serde_json::from_slice::<Value>(&text) {
            Ok(value) => self.take(wire::read_whole(self.wire(), &value, answer), answer),
            Err(error) if error.is_eof() && !text.is_empty() => {
                let partial = String::from_utf8_lossy(&text).into_owned();
                answer.add(&partial);
                Err(self.cut_off(answer, "its JSON ended too early".into()))
            }
            Err(_) => {
                let what = if text.trim_ascii_start().starts_with(b"<") {
                    "a web page"
                } else {
                    "something else"
                };
                let host = self.model.host();
                Err(Failure::Error(self.model.broken(format!(
                    "`{host}` answers with {what} instead of JSON; is `api_base` right?"
                ))))
            }
        }
    }

    fn wire(&self) -> Wire {
        self.model.settings.endpoint.wire
    }

    /// Returns the next piece of a body; none at its end.
    async fn piece(
        &self,
        body: &mut Response,
        by: Instant,
        answer: &Answer,
    ) -> Result<Option<bytes::Bytes>, Failure> {
        match timeout_at(by, body.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(self.cut_off(answer, reason(error))),
            Err(_) => {
                let timeouts = &self.model.settings.timeouts;
                let late = if Instant::now() >= self.deadline {
                    too_late("it did not come to its end", timeouts.total)
                } else if by == self.first_byte_by() {
                    too_late("no answer began", timeouts.first_byte)
                } else {
                    too_late("nothing more came", timeouts.idle)
                };
                Err(self.cut_off(answer, late))
            }
        }
    }

    /// Turns trouble inside an answer into a failure that is charged.
    fn take(&self, read: Result<(), Trouble>, answer: &Answer) -> Result<(), Failure> {
        match read {
            Ok(()) => Ok(()),
            // Nothing was written yet: as good as a refusal.
            Err(Trouble::Refused(refusal)) if answer.text.is_empty() => {
                let message = self.model.hidden(&refusal.message);
                Err(Failure::Refused(Refusal { message, ..refusal }))
            }
            Err(Trouble::Refused(refusal)) => {
                let message = self.model.hidden(&refusal.message);
                Err(self.cut_off(answer, message))
            }
            Err(Trouble::Unreadable(why)) => Err(self.cut_off(answer, why)),
        }
    }
}

/// Returns what a request can be billed for.
fn sent(request: &ModelRequest) -> Sent {
    Sent {
        prompt_bytes: request.system.len() + request.user.len(),
        bound: request.max_output_tokens.map(|output_tokens| Usage {
            input_tokens: request.most_input_tokens(),
            output_tokens,
            ..Usage::default()
        }),
    }
}

fn too_late(what: &str, limit: Duration) -> String {
    format!("{what} within {} s", limit.as_secs_f64())
}

fn reason(error: reqwest::Error) -> String {
    one_line(&deepest(&error.without_url()))
}

/// Returns what an error is really about.
fn deepest(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.source().is_none() {
        return error.to_string();
    }
    cause.to_string()
}

#[async_trait]
impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn output_limit(&self) -> Option<u64> {
        let own = self.settings.max_output_tokens.map(u64::from);
        let of_wire = || wire::default_output_limit(self.settings.endpoint.wire);
        let of_model = || price::known_window(&self.settings.name).map(|known| known.max_output);
        let known = own.or_else(of_wire).or_else(of_model);
        Some(known.unwrap_or(DEFAULT_OUTPUT_LIMIT))
    }

    async fn ask(&self, request: &ModelRequest) -> Result<Reply, ModelError> {
        let variable = self.settings.credential.as_ref();
        let variable = variable.map(|credential| credential.variable.as_str());
        let mut adaptations = 0;
        loop {
            match self.attempt(request).await {
                Ok(reply) => return Ok(reply),
                Err(Failure::Error(error)) => return Err(error),
                Err(Failure::Refused(refusal)) => {
                    let may_adapt =
                        refusal.is_about_the_question() && adaptations < MAX_ADAPTATIONS;
                    if !(may_adapt && self.adapt(&refusal)) {
                        return Err(refusal.error(&self.settings.name, variable));
                    }
                    adaptations += 1;
                }
            }
        }
    }
}

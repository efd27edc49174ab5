//! A model behind an HTTP API: one request, one reply.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http_body_util::Full;
use hyper::header::{HeaderMap, LOCATION};
use hyper::{Method, Request, Uri};
use ralph_core::ports::{Model, ModelError, ModelReply, ModelRequest, TokenUsage};
use ralph_core::price;
use ralph_core::profile::ReplyFormat;
use ralph_guest::available;
use ralph_guest::running_time::{self, timeout_at};
use serde_json::Value;
use url::Url;

use super::parameters::RequestParameters;
use super::partial_reply::{CallEstimate, PartialReply};
use super::rejection::{ProviderRejection, one_line};
use super::request_headers::request_headers;
use super::settings::{HttpModelSettings, HttpModelSettingsError};
use super::{address, retry_after, wire};
use crate::http::{HttpClient, HttpError, StreamedResponse, certificate};

/// How often a request is adapted because a parameter was rejected.
const MAX_ADAPTATIONS: usize = 4;
/// Maximum size of an error body.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// The output limit of models without a known limit.
const DEFAULT_OUTPUT_LIMIT: u64 = 16 * 1024;

/// The fix for a certificate of another host.
const NAME_FIX: &str = "check `api_base` of its profile in `models.yaml`, and the proxy";

/// A model behind an HTTP API.
pub struct HttpModel {
    pub(super) settings: HttpModelSettings,
    client: HttpClient,
    url: Url,
    /// The same address, in hyper's type.
    uri: Uri,
    headers: HeaderMap,
    /// Without the parameters that the model has rejected so far.
    parameters: Mutex<RequestParameters>,
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

/// Why there is no complete reply.
pub(super) enum ModelCallFailure {
    /// The provider rejected the request.
    Rejected(ProviderRejection),
    /// Any other failure.
    Error(ModelError),
}

impl HttpModel {
    /// Creates a model. Sends nothing until the first request.
    pub fn new(settings: HttpModelSettings) -> Result<Self, HttpModelSettingsError> {
        let url = address::request_url(&settings)?;
        let client = HttpClient::new(&settings.network, settings.timeouts.connect);
        Ok(Self {
            client: client.map_err(|error| HttpModelSettingsError::Client(error.to_string()))?,
            uri: address::request_uri(&url)?,
            headers: request_headers(&settings)?,
            url,
            parameters: Mutex::new(RequestParameters::from_settings(&settings)),
            settings,
        })
    }

    /// Returns the API host.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns the host with its port, if the URL names one.
    fn host_and_port(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host()),
            None => self.host().to_owned(),
        }
    }

    fn name(&self) -> String {
        self.settings.name.clone()
    }

    fn parameters(&self) -> RequestParameters {
        self.parameters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes the parameters of later requests; returns false if the rejection names none of them.
    fn adapt(&self, rejection: &ProviderRejection) -> bool {
        let mut parameters = self
            .parameters
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        parameters.adapt(&rejection.message, self.settings.endpoint.wire)
    }

    async fn attempt(&self, request: &ModelRequest) -> Result<ModelReply, ModelCallFailure> {
        let call = ModelCall {
            model: self,
            estimate: estimate_call(request),
            deadline: running_time::now() + self.settings.timeouts.total,
        };
        let response = call.send(request).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(self.redirect_failure(&response));
        }
        if !status.is_success() {
            return Err(call.read_rejection(response).await);
        }
        call.read_reply(response).await
    }

    /// Logs how a request ended, without any of its prompt or reply.
    fn log_attempt(
        &self,
        attempt: usize,
        result: &Result<ModelReply, ModelCallFailure>,
        duration: Duration,
    ) {
        let (model, host) = (self.settings.name.as_str(), self.host());
        let ms = duration.as_millis();
        match result {
            Ok(reply) => tracing::debug!(
                model,
                host,
                attempt,
                ms,
                input_tokens = reply.usage.input_tokens,
                output_tokens = reply.usage.output_tokens,
                "model replied"
            ),
            Err(ModelCallFailure::Rejected(rejection)) => tracing::warn!(
                model,
                host,
                attempt,
                ms,
                status = rejection.status,
                error = rejection.message,
                "model request rejected"
            ),
            Err(ModelCallFailure::Error(error)) => {
                tracing::warn!(model, host, attempt, ms, %error, "model request failed");
            }
        }
    }

    fn redirect_failure(&self, response: &StreamedResponse) -> ModelCallFailure {
        let location = response.headers().get(LOCATION);
        let target = location
            .and_then(|value| available(value.to_str()))
            .and_then(|text| available(self.url.join(text)));
        let host = target.as_ref().and_then(Url::host_str).unwrap_or("nowhere");
        let message = format!(
            "status {}, a redirect to `{host}`, which must not receive the credential",
            response.status().as_u16()
        );
        ModelCallFailure::Error(self.endpoint_error(message))
    }

    /// Returns the error for a URL that is not an API endpoint.
    pub(super) fn endpoint_error(&self, message: String) -> ModelError {
        ModelError::Broken {
            model: self.name(),
            message,
            fix: Some("correct `api_base` of its profile in `models.yaml`".into()),
        }
    }

    /// Redacts the API key, which some providers echo.
    pub(super) fn redact_key(&self, text: &str) -> String {
        let key = self.settings.credential.as_ref();
        match key.map(|key| key.secret.expose().trim()) {
            Some(key) if !key.is_empty() => text.replace(key, "***"),
            Some(_) | None => text.to_owned(),
        }
    }
}

/// A request in progress.
pub(super) struct ModelCall<'m> {
    pub(super) model: &'m HttpModel,
    pub(super) estimate: CallEstimate,
    /// The deadline for the complete reply, in running time of this process.
    pub(super) deadline: Duration,
}

impl ModelCall<'_> {
    async fn send(&self, request: &ModelRequest) -> Result<StreamedResponse, ModelCallFailure> {
        let HttpModel {
            settings,
            client,
            uri,
            headers,
            ..
        } = self.model;
        let mut parameters = self.model.parameters();
        if request.schema.is_none() && parameters.format == ReplyFormat::Schema {
            // No schema is given; the prompt describes the expected JSON.
            parameters.format = ReplyFormat::Json;
        }
        if let Some(maximum) = request.max_output_tokens {
            let own = parameters.output_limit.unwrap_or(maximum);
            parameters.output_limit = Some(own.min(maximum));
        }
        let endpoint = &settings.endpoint;
        let body = wire::body(endpoint.wire, &endpoint.model, request, &parameters);
        let mut request = Request::new(Full::from(body.to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        request.headers_mut().clone_from(headers);
        let sent = timeout_at(self.first_byte_deadline(), client.send(request)).await;
        match sent {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error @ HttpError::Connect(_))) => Err(self.connect_failure(&error)),
            // The provider may have received the request, so it may bill it.
            Ok(Err(error)) => Err(self.interrupted(&PartialReply::default(), error_reason(&error))),
            Err(_) => Err(self.interrupted(
                &PartialReply::default(),
                timeout_message("no data arrived", settings.timeouts.first_byte),
            )),
        }
    }

    pub(super) fn first_byte_deadline(&self) -> Duration {
        let total = self.model.settings.timeouts.total;
        let started = self.deadline.saturating_sub(total);
        (started + self.model.settings.timeouts.first_byte).min(self.deadline)
    }

    fn connect_failure(&self, error: &HttpError) -> ModelCallFailure {
        let host = self.model.host_and_port();
        if let Some(problem) = certificate::find_problem(error, NAME_FIX) {
            // Retrying does not help: a setting has to change.
            return ModelCallFailure::Error(ModelError::Broken {
                model: self.model.name(),
                message: format!("the certificate of `{host}` {}", problem.what),
                fix: Some(problem.fix.to_owned()),
            });
        }
        let cause = error.root_cause();
        ModelCallFailure::Error(ModelError::Transient {
            model: self.model.name(),
            status: 0,
            retry_after: None,
            message: one_line(&format!("cannot reach `{host}`: {cause}")),
        })
    }

    pub(super) fn interrupted(&self, reply: &PartialReply, message: String) -> ModelCallFailure {
        ModelCallFailure::Error(ModelError::CutOff {
            model: self.model.name(),
            message,
            partial: reply.text.clone(),
            usage: reply.usage_so_far(&self.estimate),
        })
    }

    async fn read_rejection(&self, mut response: StreamedResponse) -> ModelCallFailure {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY_BYTES
            && let Ok(Ok(Some(chunk))) =
                timeout_at(self.next_chunk_deadline(), response.chunk()).await
        {
            body.extend_from_slice(&chunk);
        }
        let text = self.model.redact_key(&String::from_utf8_lossy(&body));
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let now = self.model.settings.clock.now();
        ModelCallFailure::Rejected(ProviderRejection::from_body(
            status,
            &text,
            retry_after::requested_wait(&headers, &value, now),
        ))
    }

    pub(super) fn next_chunk_deadline(&self) -> Duration {
        (running_time::now() + self.model.settings.timeouts.idle).min(self.deadline)
    }
}

/// Returns the size of the prompt and, if the output is limited, the most that can be billed.
fn estimate_call(request: &ModelRequest) -> CallEstimate {
    CallEstimate {
        prompt_bytes: request.system.len() + request.user.len(),
        bound: request.max_output_tokens.map(|output_tokens| TokenUsage {
            input_tokens: request.max_input_tokens(),
            output_tokens,
            ..TokenUsage::default()
        }),
    }
}

pub(super) fn timeout_message(what: &str, limit: Duration) -> String {
    format!("{what} within {} s", limit.as_secs_f64())
}

pub(super) fn error_reason(error: &HttpError) -> String {
    one_line(&error.root_cause())
}

#[async_trait]
impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn output_limit(&self) -> Option<u64> {
        let own = self.settings.max_output_tokens.map(u64::from);
        let wire_limit = || wire::default_output_limit(self.settings.endpoint.wire);
        let model_limit =
            || price::embedded_window(&self.settings.name).map(|known| known.max_output);
        let known = own.or_else(wire_limit).or_else(model_limit);
        Some(known.unwrap_or(DEFAULT_OUTPUT_LIMIT))
    }

    async fn ask_once(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let variable = self.settings.credential.as_ref();
        let variable = variable.map(|credential| credential.source.as_str());
        let mut adaptations = 0;
        loop {
            let started = Instant::now();
            let result = self.attempt(request).await;
            self.log_attempt(adaptations + 1, &result, started.elapsed());
            match result {
                Ok(reply) => return Ok(reply),
                Err(ModelCallFailure::Error(error)) => return Err(error),
                Err(ModelCallFailure::Rejected(rejection)) => {
                    let may_adapt = rejection.is_invalid_request() && adaptations < MAX_ADAPTATIONS;
                    if !(may_adapt && self.adapt(&rejection)) {
                        return Err(rejection.into_model_error(&self.settings.name, variable));
                    }
                    adaptations += 1;
                }
            }
        }
    }
}

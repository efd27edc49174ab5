//! Errors in the provider's format, so that its clients can parse them.

use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use ralph_core::net::{EgressDecider, EgressDecision, EgressReason};
use serde_json::json;

use super::route::{ErrorDialect, Route};
use crate::http::{GateBody, REASON_HEADER, full_body};

/// A refused request to the credential port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CredentialRefusal {
    pub(super) status: StatusCode,
    pub(super) decision: EgressDecision,
    pub(super) text: String,
    pub(super) retry_after: Option<u64>,
    /// Replaces the provider's error format.
    pub(super) dialect_override: Option<ErrorDialect>,
}

impl CredentialRefusal {
    pub(super) fn new(
        status: u16,
        reason: EgressReason,
        decider: EgressDecider,
        text: &str,
    ) -> Self {
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
            decision: EgressDecision::denied(reason, decider),
            text: format!("ralph: {text}"),
            retry_after: None,
            dialect_override: None,
        }
    }

    /// Reports that the provider of a standalone credential port is unreachable.
    pub(super) fn unreachable(why: impl std::fmt::Display) -> Self {
        Self {
            text: format!("proxy: upstream unreachable: {why}"),
            dialect_override: Some(ErrorDialect::Plain),
            ..Self::new(502, EgressReason::Unreachable, EgressDecider::Gate, "")
        }
    }

    /// Formats the refusal as the provider of the route would, or as plain text without a route.
    pub(super) fn to_response(&self, route: Option<&Route>) -> Response<GateBody> {
        let own = route.map_or(ErrorDialect::Plain, |route| route.dialect);
        let dialect = self.dialect_override.unwrap_or(own);
        let (kind, body) = match dialect {
            ErrorDialect::Anthropic => ("application/json", self.anthropic_body()),
            ErrorDialect::OpenAi => ("application/json", self.openai_body()),
            ErrorDialect::Plain => ("text/plain; charset=utf-8", format!("{}\n", self.text)),
        };
        let mut response = Response::new(full_body(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let code = self.decision.reason.code();
        headers.insert(REASON_HEADER, HeaderValue::from_static(code));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED && dialect == ErrorDialect::Plain {
            // Git sends its credential only after a challenge.
            let basic = HeaderValue::from_static("Basic realm=\"ralph\"");
            headers.insert(WWW_AUTHENTICATE, basic);
        }
        response
    }

    /// Formats the refusal as the last event of a stream, in a provider's format.
    pub(super) fn to_stream_event(&self, dialect: ErrorDialect) -> String {
        match dialect {
            ErrorDialect::Anthropic => format!("event: error\ndata: {}\n\n", self.anthropic_body()),
            ErrorDialect::OpenAi | ErrorDialect::Plain => {
                format!("data: {}\n\n", self.openai_body())
            }
        }
    }

    fn anthropic_body(&self) -> String {
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            _ => "api_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": self.text}}).to_string()
    }

    fn openai_body(&self) -> String {
        let (kind, code) = match self.status.as_u16() {
            401 => ("invalid_request_error", Some("invalid_api_key")),
            402 => ("insufficient_quota", Some("insufficient_quota")),
            429 => ("requests", Some("rate_limit_exceeded")),
            400..=499 => ("invalid_request_error", None),
            _ => ("server_error", None),
        };
        let error = json!({"message": self.text, "type": kind, "param": null, "code": code});
        json!({ "error": error }).to_string()
    }
}

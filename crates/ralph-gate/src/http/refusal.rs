//! Error responses for refused requests.

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use ralph_core::id::RunId;
use ralph_core::net::{EgressDecision, EgressReason, Endpoint};

use super::body::{GateBody, full_body};
use crate::audit::sanitize_text;
use crate::dial::DialError;

/// The response header with the reason of a refusal.
pub(crate) const REASON_HEADER: HeaderName = HeaderName::from_static("x-ralph-gate");

/// A refused request.
#[derive(Debug)]
pub(crate) struct HttpRefusal {
    pub(crate) status: StatusCode,
    pub(crate) decision: EgressDecision,
    pub(crate) text: String,
}

impl HttpRefusal {
    /// Refuses an endpoint that the run may not reach.
    pub(crate) fn blocked(run: &RunId, endpoint: &Endpoint, decision: EgressDecision) -> Self {
        let host = &endpoint.host;
        let ask_user = format!("ask the user to run `ralph allow {run} {host}`");
        let (why, what_to_do) = if decision.reason == EgressReason::CredentialHost {
            (
                "it is only reachable through the credential port".to_owned(),
                "use the base URL from the environment".to_owned(),
            )
        } else if decision.reason == EgressReason::PortNotAllowed {
            (
                format!("port {} is not allowed for it", endpoint.port),
                format!("ask the user to run `ralph allow {run} {endpoint}`"),
            )
        } else if decision.reason == EgressReason::BlockedByPolicy {
            ("this run has no network".to_owned(), ask_user)
        } else {
            ("it is not on this run's allowlist".to_owned(), ask_user)
        };
        Self {
            status: StatusCode::FORBIDDEN,
            decision,
            text: format!("ralph: `{host}` is blocked — {why} — {what_to_do}"),
        }
    }

    /// Refuses a request whose endpoint cannot be reached.
    pub(crate) fn from_dial_error(error: &DialError) -> Self {
        let decision = error.decision();
        let status = match error {
            DialError::Refused { .. } => StatusCode::FORBIDDEN,
            DialError::NoAddress { .. }
            | DialError::Unreachable { .. }
            | DialError::Untrusted { .. } => StatusCode::BAD_GATEWAY,
        };
        Self {
            status,
            decision,
            text: format!("ralph: cannot connect — {error} — check the host"),
        }
    }

    /// Refuses a request with a credential that the gate did not add.
    pub(crate) fn foreign_credential(endpoint: &Endpoint, part: &str) -> Self {
        let host = &endpoint.host;
        Self {
            status: StatusCode::FORBIDDEN,
            decision: EgressDecision::denied(
                EgressReason::ForeignCredential,
                ralph_core::net::EgressDecider::Gate,
            ),
            text: format!(
                "ralph: request to `{host}` refused — {part} carries a credential that does not \
                 belong to this run — send the request without it"
            ),
        }
    }

    /// Refuses an invalid request. The text is limited to printable ASCII.
    pub(crate) fn bad_request(reason: EgressReason, text: &str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            decision: EgressDecision::denied(reason, ralph_core::net::EgressDecider::Gate),
            text: format!("ralph: request refused — {}", sanitize_text(text)),
        }
    }

    pub(crate) fn to_response(&self) -> Response<GateBody> {
        let mut response = text_response(self.status, format!("{}\n", self.text));
        let code = HeaderValue::from_static(self.decision.reason.code());
        response.headers_mut().insert(REASON_HEADER, code);
        response
    }
}

pub(crate) fn text_response(status: StatusCode, text: String) -> Response<GateBody> {
    let mut response = Response::new(full_body(text));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

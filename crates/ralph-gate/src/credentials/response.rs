//! Prepares a provider's response for the sandbox.

use std::borrow::Cow;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{HeaderMap, Method, Response, Uri};
use ralph_core::net::{EgressDecider, EgressReason, Endpoint};
use ralph_core::parse_value;
use ralph_core::secret::Redactor;

use super::background_reader::BackgroundReader;
use super::refusal::CredentialRefusal;
use super::relayed_body::{RelayState, RelayedBody};
use super::route::Route;
use super::send::AdmittedCall;
use crate::audit::OpenRecord;
use crate::http::{self, GateBody, header_text};
use crate::meter::ResponseMeter;

/// Returns a provider's response as the sandbox may see it. The response body owns the audit
/// record.
pub(super) fn build_response(
    (route, redactor): (&Route, &Redactor),
    method: &Method,
    admitted: Option<AdmittedCall>,
    response: Response<Incoming>,
    record: &mut Option<OpenRecord>,
    background_reader: BackgroundReader,
) -> Result<Response<GateBody>, CredentialRefusal> {
    let (mut parts, upstream) = response.into_parts();
    if let Err(refused) = sanitize_headers((route, redactor), method, &mut parts.headers) {
        if let Some(admitted) = admitted.filter(|_| !parts.status.is_success()) {
            admitted.call.release();
        }
        return Err(refused);
    }
    let mut record = record.take();
    if let Some(record) = &mut record {
        record.set_status(parts.status.as_u16());
    }
    let (mut meter, mut recorder) = (None, None);
    if let Some(mut admitted) = admitted {
        recorder = admitted
            .recorder
            .take()
            .map(|recorder| recorder.with_response_head(parts.status, &parts.headers));
        if parts.status.is_success() {
            meter = Some(ResponseMeter::new(
                admitted.wire,
                admitted.call,
                admitted.memory,
            ));
        } else {
            admitted.call.release();
        }
    }
    let relay = RelayedBody {
        upstream: Some(upstream),
        redact: Some(redactor.stream()),
        meter,
        recorder,
        dialect: route.dialect,
        record,
        state: RelayState::Open,
        background_reader,
    };
    Ok(Response::from_parts(parts, relay.boxed_unsync()))
}

/// Removes, rewrites or redacts headers that the sandbox must not see. Refuses compressed responses
/// and redirects to other hosts.
fn sanitize_headers(
    (route, redactor): (&Route, &Redactor),
    method: &Method,
    headers: &mut HeaderMap,
) -> Result<(), CredentialRefusal> {
    http::strip_hop_by_hop(headers);
    headers.remove(SET_COOKIE);
    headers.remove("alt-svc");
    if method != Method::HEAD {
        // Redaction can change the length.
        headers.remove(CONTENT_LENGTH);
    }
    let is_compressed = headers
        .get(CONTENT_ENCODING)
        .is_some_and(|encoding| encoding != "identity");
    if is_compressed {
        let text = "the provider compressed its response, although the request did not accept that";
        return Err(CredentialRefusal::new(
            502,
            EgressReason::UnsupportedProtocol,
            EgressDecider::Gate,
            text,
        ));
    }
    if let Some(location) = headers.get(LOCATION) {
        let location = header_text(location).and_then(|text| rewrite_location(route, text));
        let location = location.map(HeaderValue::try_from);
        let Some(Ok(location)) = location else {
            let text =
                "the provider redirects to another host — the credential must not be sent there";
            return Err(CredentialRefusal::new(
                502,
                EgressReason::ForeignRedirect,
                EgressDecider::Credential,
                text,
            ));
        };
        headers.insert(LOCATION, location);
    }
    redact_headers(redactor, headers);
    Ok(())
}

/// Redacts the credential in header values.
fn redact_headers(redactor: &Redactor, headers: &mut HeaderMap) {
    // Few responses contain the credential, so all values are searched in one pass, separated by
    // line feeds, which no value can contain.
    let mut all = Vec::with_capacity(1024);
    for value in headers.values() {
        all.extend_from_slice(value.as_bytes());
        all.push(b'\n');
    }
    if matches!(redactor.redact_bytes(&all), Cow::Borrowed(_)) {
        return;
    }
    for value in headers.values_mut() {
        let redacted = redactor.redact_bytes(value.as_bytes());
        if let Cow::Owned(redacted) = redacted {
            *value = HeaderValue::from_bytes(&redacted)
                .unwrap_or_else(|_| HeaderValue::from_static("[REDACTED]"));
        }
    }
}

/// Translates a location on the route's host into one on the credential port.
fn rewrite_location(route: &Route, location: &str) -> Option<String> {
    let path = if location.starts_with('/') && !location.starts_with("//") {
        location
    } else {
        let uri: Uri = parse_value(location)?;
        let upstream = &route.upstream;
        let default_port = if uri.scheme_str()? == "https" {
            443
        } else {
            80
        };
        let Ok(endpoint) = Endpoint::parse(uri.authority()?.as_str(), default_port) else {
            return None;
        };
        if uri.scheme() != Some(&upstream.origin.scheme) || endpoint != upstream.endpoint {
            return None;
        }
        let start = location.find(uri.path()).filter(|_| uri.path() != "/")?;
        &location[start..]
    };
    let rest = path.strip_prefix(route.upstream.base_path.as_str())?;
    rest.starts_with('/')
        .then(|| format!("{}{rest}", route.prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_core::secret::Secret;

    #[test]
    fn redirects_stay_on_the_route() {
        let secret = Secret::new("real-secret".to_owned());
        let route = Route::openai(secret).unwrap();
        for (location, inside) in [
            ("/v1/models", Some("/openai/v1/models")),
            (
                "https://api.openai.com/v1/models?a=b",
                Some("/openai/v1/models?a=b"),
            ),
            (
                "https://API.openai.com:443/v1/models",
                Some("/openai/v1/models"),
            ),
            ("/other/models", None),
            ("//evil.example/v1/models", None),
            ("https://evil.example/v1/models", None),
            ("http://api.openai.com/v1/models", None),
            ("https://api.openai.com:8443/v1/models", None),
            ("https://api.openai.com@evil.example/v1/models", None),
            ("models", None),
            ("", None),
        ] {
            assert_eq!(
                rewrite_location(&route, location).as_deref(),
                inside,
                "{location}"
            );
        }
    }
}

//! The opening handshake of a WebSocket: turns a request into a connection.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::upgrade::OnUpgrade;
use sha1::{Digest as _, Sha1};

use crate::problem::Problem;

/// The constant of RFC 6455 that proves that the server understood the request.
const ACCEPT_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The response of an accepted handshake, and the connection that follows it.
#[derive(Debug)]
pub(super) struct AcceptedHandshake {
    pub(super) response: Response,
    pub(super) connection: OnUpgrade,
}

/// Returns whether a request asks for a WebSocket.
pub(crate) fn wants_websocket(headers: &HeaderMap) -> bool {
    has_token(headers, &header::UPGRADE, "websocket")
}

/// Accepts the handshake of a request, or returns what is wrong with it.
pub(super) fn accept(request: &mut Request) -> Result<AcceptedHandshake, Response> {
    let headers = request.headers();
    let is_upgrade = request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && has_token(headers, &header::CONNECTION, "upgrade")
        && wants_websocket(headers);
    if !is_upgrade {
        return Err(upgrade_required("this address is a stream of events"));
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION) != Some(&HeaderValue::from_static("13")) {
        return Err(upgrade_required("the version of the protocol is not 13"));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let Some(accept) = key.and_then(accept_key) else {
        let detail = "the header `Sec-WebSocket-Key` is not 16 bytes in base64";
        let problem = Problem::new(StatusCode::BAD_REQUEST, "invalid-handshake", detail);
        return Err(problem.into_response());
    };
    let Some(connection) = request.extensions_mut().remove::<OnUpgrade>() else {
        return Err(upgrade_required("this connection cannot be upgraded"));
    };
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ];
    let response = (StatusCode::SWITCHING_PROTOCOLS, headers).into_response();
    Ok(AcceptedHandshake {
        response,
        connection,
    })
}

fn upgrade_required(detail: &str) -> Response {
    let problem = Problem::new(StatusCode::UPGRADE_REQUIRED, "upgrade-required", detail)
        .with_hint("open it with a WebSocket client");
    let headers = [
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_VERSION, "13"),
    ];
    (headers, problem).into_response()
}

/// Returns the response to a key; none if the key is invalid.
fn accept_key(key: &HeaderValue) -> Option<HeaderValue> {
    let is_valid = STANDARD
        .decode(key.as_bytes())
        .is_ok_and(|decoded| decoded.len() == 16);
    if !is_valid {
        return None;
    }
    let digest = Sha1::new()
        .chain_update(key.as_bytes())
        .chain_update(ACCEPT_GUID)
        .finalize();
    HeaderValue::from_str(&STANDARD.encode(digest))
        .into_iter()
        .next()
}

fn has_token(headers: &HeaderMap, name: &header::HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let mut tokens = values
        .flat_map(HeaderValue::to_str)
        .flat_map(|value| value.split(','));
    tokens.any(|found| found.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_the_rfc() {
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        let accept = accept_key(&key).unwrap();
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for invalid in ["", "c2hvcnQ=", "not base64 at all!!!!!!"] {
            assert_eq!(accept_key(&HeaderValue::from_static(invalid)), None);
        }
    }
}

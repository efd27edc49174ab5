//! Reads the body of a request before its handler, so that no handler waits for a slow client.

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::timeout;

use super::limits::{BODY_TIMEOUT, MAX_BODY_BYTES};
use crate::problem::Problem;

/// The number of bytes of a rejected body that are read and dropped.
const MAX_DISCARDED_BYTES: usize = 256 << 20;

/// Reads a body of limited size within a limited time.
pub(super) async fn read_body(mut body: Body) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let read = async {
        if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
            return Err(too_large());
        }
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return Err(Problem::new(
                    StatusCode::BAD_REQUEST,
                    "incomplete-body",
                    "the body of the request is not complete",
                ));
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > MAX_BODY_BYTES {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    };
    let read = timeout(BODY_TIMEOUT, read).await.unwrap_or_else(|_| {
        Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "slow-body",
            format!(
                "the body did not arrive within {} seconds",
                BODY_TIMEOUT.as_secs()
            ),
        ))
    });
    if read.is_err() {
        discard_body(body).await;
    }
    read
}

/// Reads the rest of a body and drops it: a client that is still sending would not read the response.
pub(super) async fn discard_body(mut body: Body) {
    let discard = async {
        let mut count = 0;
        while let Some(Ok(frame)) = body.frame().await {
            count += frame.data_ref().map_or(0, Bytes::len);
            if count > MAX_DISCARDED_BYTES {
                break;
            }
        }
    };
    if timeout(BODY_TIMEOUT, discard).await.is_err() {
        tracing::debug!("a rejected body did not end in time");
    }
}

/// Refuses JSON that is no object: the deserializer would accept a list of the values of all fields.
pub(super) fn require_object(parts: &Parts, body: &Bytes) -> Result<(), Problem> {
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if !is_json || first.is_none_or(|byte| *byte == b'{') {
        return Ok(());
    }
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(body) {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad-request",
            format!("the body is not JSON: {error}"),
        ));
    }
    Err(Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "invalid-request",
        "the body is not a JSON object",
    ))
}

fn too_large() -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body-too-large",
        format!("the body has more than {} MiB", MAX_BODY_BYTES >> 20),
    )
}

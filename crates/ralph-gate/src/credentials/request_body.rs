//! Reads the body of a model request within the gate's byte budget and a timeout.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ralph_core::net::{EgressDecider, EgressReason};
use tokio::time::timeout;

use super::refusal::CredentialRefusal;
use crate::GateLimits;
use crate::memory::{ByteBudget, HeldBytes};

/// The initial buffer size, in bytes.
const INITIAL_CAPACITY: usize = 16 * 1024;
/// The `Retry-After` of a request refused for lack of memory, in seconds.
const RETRY_AFTER_SECONDS: u64 = 5;

/// A body and its share of the byte budget.
pub(super) struct ReceivedBody {
    pub(super) bytes: Bytes,
    pub(super) memory: HeldBytes,
}

/// Reads a body to the end.
pub(super) async fn receive(
    limits: &GateLimits,
    budget: &ByteBudget,
    body: Incoming,
) -> Result<ReceivedBody, CredentialRefusal> {
    let collecting = timeout(limits.body_timeout, collect(limits, budget, body));
    collecting.await.unwrap_or_else(|_| {
        let seconds = limits.body_timeout.as_secs_f64();
        let text = format!(
            "the request body took longer than {seconds}s to arrive — send it without pauses"
        );
        Err(limit_reached(408, &text))
    })
}

async fn collect(
    limits: &GateLimits,
    budget: &ByteBudget,
    mut body: Incoming,
) -> Result<ReceivedBody, CredentialRefusal> {
    let max_bytes = limits.model_request_bytes;
    let mut memory = budget.hold();
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            let text = "the request body is incomplete — send all of it";
            CredentialRefusal::new(400, EgressReason::Malformed, EgressDecider::Gate, text)
        })?;
        let Ok(chunk) = frame.into_data() else {
            continue;
        };
        let needed = bytes.len() + chunk.len();
        if needed > max_bytes {
            let text =
                format!("the request has more than {max_bytes} bytes — send a smaller request");
            return Err(limit_reached(413, &text));
        }
        if needed > bytes.capacity() {
            let capacity = needed
                .max(bytes.capacity() * 2)
                .clamp(INITIAL_CAPACITY, max_bytes.max(INITIAL_CAPACITY));
            if !memory.grow_to(capacity, limits.memory_wait).await {
                return Err(memory_exhausted());
            }
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(ReceivedBody {
        bytes: bytes.into(),
        memory,
    })
}

/// Refuses a request that exceeds the byte budget.
pub(super) fn memory_exhausted() -> CredentialRefusal {
    let text = "the gate is out of memory — other requests are using it — retry later";
    CredentialRefusal {
        retry_after: Some(RETRY_AFTER_SECONDS),
        ..limit_reached(503, text)
    }
}

fn limit_reached(status: u16, text: &str) -> CredentialRefusal {
    CredentialRefusal::new(
        status,
        EgressReason::LimitReached,
        EgressDecider::Gate,
        text,
    )
}

//! Reads the body of a model request, within the gate's byte budget and a time.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ralph_core::net::{Decider, Reason};
use tokio::time::timeout;

use super::words::Refused;
use crate::Limits;
use crate::memory::{ByteBudget, HeldBytes};

/// The first buffer, in bytes.
const FIRST: usize = 16 * 1024;
/// When a client that found no memory free should try again, in seconds.
const RETRY_AFTER: u64 = 5;

/// A body and the memory that is held for it.
pub(super) struct ReceivedBody {
    pub(super) bytes: Bytes,
    pub(super) memory: HeldBytes,
}

/// Reads a body to its end.
pub(super) async fn receive(
    limits: &Limits,
    budget: &ByteBudget,
    body: Incoming,
) -> Result<ReceivedBody, Refused> {
    let collecting = timeout(limits.body_time, collect(limits, budget, body));
    collecting.await.unwrap_or_else(|_| {
        let seconds = limits.body_time.as_secs_f64();
        let text = format!("the request took longer than {seconds} s to arrive — send it whole");
        Err(limit_reached(408, &text))
    })
}

async fn collect(
    limits: &Limits,
    budget: &ByteBudget,
    mut body: Incoming,
) -> Result<ReceivedBody, Refused> {
    let most = limits.model_request_bytes;
    let mut memory = budget.hold();
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            let text = "the request ended too early — send it whole";
            Refused::new(400, Reason::Malformed, Decider::Gate, text)
        })?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        let needed = bytes.len() + piece.len();
        if needed > most {
            let text = format!("the request has more than {most} bytes — send less");
            return Err(limit_reached(413, &text));
        }
        if needed > bytes.capacity() {
            let capacity = needed
                .max(bytes.capacity() * 2)
                .clamp(FIRST, most.max(FIRST));
            if !memory.grow_to(capacity, limits.memory_wait).await {
                return Err(no_memory());
            }
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(ReceivedBody {
        bytes: bytes.into(),
        memory,
    })
}

/// The refusal of a request that the byte budget has no room for.
pub(super) fn no_memory() -> Refused {
    let text = "too much is being sent at once — other requests hold the memory — send it later";
    Refused {
        retry_after: Some(RETRY_AFTER),
        ..limit_reached(503, text)
    }
}

fn limit_reached(status: u16, text: &str) -> Refused {
    Refused::new(status, Reason::LimitReached, Decider::Gate, text)
}

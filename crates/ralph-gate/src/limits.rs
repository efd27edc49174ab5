//! What one sandbox may ask of the gate.

use std::time::Duration;

/// Bounds for the connections of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateLimits {
    /// How many may be open at once; another is closed at once.
    pub connections: usize,
    /// How long the head of a request or a TLS hello may take, and how long a connection may wait for
    /// the next request.
    pub head_timeout: Duration,
    /// How many bytes the head of a request may have, at least 8 KiB; as many stay in memory for a
    /// connection that waits.
    pub head_bytes: usize,
    /// How many header fields a request may have.
    pub head_fields: usize,
    /// How long a connection may carry nothing at all.
    pub idle_timeout: Duration,
    /// How long connecting to one address may take.
    pub connect_timeout: Duration,
    /// How many bytes one connection may carry in each direction.
    pub connection_bytes: u64,
    /// How many bytes a request to a model may have.
    pub model_request_bytes: usize,
    /// How many bytes all model requests and buffered answers may take together.
    pub buffered_bytes: usize,
    /// How long the body of a model request may take to arrive.
    pub body_timeout: Duration,
    /// How long a model request may wait for memory that others hold.
    pub memory_wait: Duration,
    /// How many calls to models may be under way, those included whose client has left.
    pub model_calls: usize,
    /// How long a model request may wait for what other calls have reserved.
    pub reservation_wait: Duration,
    /// How long the answer to a client that has left is read on, to learn what it cost.
    pub background_read_timeout: Duration,
    /// How many bytes of it are read.
    pub background_read_bytes: usize,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            head_timeout: Duration::from_secs(30),
            head_bytes: 16 * 1024,
            head_fields: 128,
            idle_timeout: Duration::from_mins(10),
            connect_timeout: Duration::from_secs(10),
            connection_bytes: 8 * 1024 * 1024 * 1024,
            model_request_bytes: 32 * 1024 * 1024,
            buffered_bytes: 96 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            memory_wait: Duration::from_secs(10),
            model_calls: 256,
            reservation_wait: Duration::from_secs(30),
            background_read_timeout: Duration::from_mins(1),
            background_read_bytes: 16 * 1024 * 1024,
        }
    }
}

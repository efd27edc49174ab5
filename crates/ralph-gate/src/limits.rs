//! Limits on the resources that a sandbox may use in the gate.

use std::time::Duration;

/// Limits for the connections of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateLimits {
    /// Open connections; further ones are closed immediately.
    pub connections: usize,
    /// Time to receive a request head or TLS hello, and to wait for the next request on a
    /// connection.
    pub head_timeout: Duration,
    /// Maximum size of a request head, at least 8 KiB. An idle connection keeps a buffer of this
    /// size.
    pub head_bytes: usize,
    /// Maximum number of header fields per request.
    pub head_fields: usize,
    /// Time that a connection may be idle.
    pub idle_timeout: Duration,
    /// Time to resolve a name, to connect to one address, and for a TLS handshake with it.
    pub connect_timeout: Duration,
    /// Maximum bytes per connection in each direction.
    pub connection_bytes: u64,
    /// Maximum bytes of a model request.
    pub model_request_bytes: usize,
    /// Maximum bytes of all buffered model requests and responses together.
    pub buffered_bytes: usize,
    /// Time to receive the body of a model request.
    pub body_timeout: Duration,
    /// Time that a model request may wait for memory in use by others.
    pub memory_wait: Duration,
    /// Maximum concurrent model calls, including those whose client has disconnected.
    pub model_calls: usize,
    /// Time that a model request may wait for the reservations of other calls.
    pub reservation_wait: Duration,
    /// Time to keep reading the response for a disconnected client, to learn its cost.
    pub background_read_timeout: Duration,
    /// Maximum bytes read of such a response.
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

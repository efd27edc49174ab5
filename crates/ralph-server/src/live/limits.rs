//! The limits of streams.

use std::time::Duration;

/// The limits of streams. A client beyond them loses its connection, never events: it can continue
/// from the last number that it received.
#[derive(Debug, Clone)]
pub(crate) struct StreamLimits {
    /// The bytes of frames that a client may be behind.
    pub(crate) lag_bytes: u64,
    /// The events that a client may be behind.
    pub(crate) lag_events: u64,
    /// The time for which a client may exceed a limit, or accept no byte.
    pub(crate) grace: Duration,
    /// The interval between two pings.
    pub(crate) ping: Duration,
    /// The interval at which a client's progress is checked.
    pub(crate) check: Duration,
    /// The time in which a client has to accept the last frames and the close frame.
    pub(crate) closing: Duration,
    /// The number of clients.
    pub(crate) clients: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            lag_bytes: 4 << 20,
            lag_events: 2000,
            grace: Duration::from_secs(30),
            ping: Duration::from_secs(20),
            check: Duration::from_secs(5),
            closing: Duration::from_secs(10),
            clients: 10_000,
        }
    }
}

/// How far a client is behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StreamLag {
    pub(super) bytes: u64,
    pub(super) events: u64,
}

impl StreamLag {
    pub(super) fn exceeds(self, limits: &StreamLimits) -> bool {
        self.bytes > limits.lag_bytes || self.events > limits.lag_events
    }
}

//! The embedded guest program, built for ralph's target architecture.

/// Empty if ralph was built without the guest.
pub(super) static GUEST_PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ralph-guest"));

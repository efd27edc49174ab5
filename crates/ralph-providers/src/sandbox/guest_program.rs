//! The guest's program, built for the machine that this ralph is for.

/// The bytes of the program; empty if this ralph was built without it.
pub(super) static GUEST_PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ralph-guest"));

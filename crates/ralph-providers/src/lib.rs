//! The outside: where commands run, where changes go, who answers.
//!
//! Each provider implements one port of `ralph-core` and knows no other provider. The map:
//!
//! - [`sandbox`] runs commands and keeps files.

pub mod sandbox;

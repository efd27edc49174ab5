//! The tests of the providers, in one binary.

mod sandbox_local;

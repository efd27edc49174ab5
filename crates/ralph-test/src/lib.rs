//! Test.

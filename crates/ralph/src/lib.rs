//! ralph.

pub mod audit;

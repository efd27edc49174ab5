//! The Docker sandbox, on a real engine.

mod contract;
mod door;
mod place;

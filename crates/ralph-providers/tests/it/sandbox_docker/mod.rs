//! The Docker sandbox, on a real engine.

mod contract;
mod limits;
mod place;

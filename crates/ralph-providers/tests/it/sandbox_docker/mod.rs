//! The Docker sandbox, on a real engine.

mod contract;
mod crowds;
mod image;
mod limits;
mod place;
mod users;
mod walls;

//! The Docker sandbox, on a real engine.

mod contract;
mod crowds;
mod exchange;
mod floods;
mod habits;
mod image;
mod limits;
mod memory;
mod place;
mod users;
mod walls;

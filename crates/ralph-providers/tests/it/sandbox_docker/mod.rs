//! The Docker sandbox, on a real engine.

mod contract;
mod crowds;
mod death;
mod disk;
mod exchange;
mod floods;
mod habits;
mod image;
mod limits;
mod memory;
mod missing;
mod owner;
mod place;
mod restart;
mod takeover;
mod users;
mod walls;
mod way_out;

//! The Docker sandbox, on a real Docker Engine.

mod contract;
mod crowds;
mod death;
mod disk;
mod egress;
mod exchange;
mod fixture;
mod floods;
mod habits;
mod image;
mod isolation;
mod limits;
mod memory;
mod missing;
mod owner;
mod restart;
mod takeover;
mod users;

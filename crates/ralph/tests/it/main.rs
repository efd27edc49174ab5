//! Runs the real program the way people and scripts do.

mod follow;
mod looks;
mod reading;
mod starting;
mod steering;
mod support;
mod usage;

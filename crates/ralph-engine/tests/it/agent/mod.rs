//! Iterations in which an agent's program works.

mod ends;
mod hosts;
mod messages;
#[cfg(target_os = "linux")]
mod people;
mod script;
mod world;

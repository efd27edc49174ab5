//! Complete runs with an agent program: a project's script, and the real agents.

mod fixture;
mod interruptions;
mod limits;
mod outage;
mod real;
mod scripts;
mod secrets;
mod steered;

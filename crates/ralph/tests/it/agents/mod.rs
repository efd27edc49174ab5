//! Complete runs with an agent program: a project's script, and the real agents.

mod credentials;
mod default_sandbox;
mod fallback;
mod fixture;
mod interruptions;
mod limits;
mod outage;
mod paused;
mod real;
mod scripts;
mod secrets;
mod steered;

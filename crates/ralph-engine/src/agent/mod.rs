//! An iteration in which an agent's program works inside the sandbox: `prompt` builds its prompt,
//! `work` starts it and restarts it if that helps, `session` is one start, `home` its new home
//! directory, `watch` observes it while it works, `frozen` holds it while the run is paused,
//! `fallback` replaces it with the fallback agent,
//! `messenger` sends it messages, `sink` turns its output into events, `transcript` stores that output, `settle` decides how the run
//! continues, `ticks` reads the boxes that it claims,
//! `spec_marks` the steps of an issue that it marks.

mod blocked;
mod fallback;
mod frozen;
mod home;
mod messenger;
mod prompt;
mod session;
mod session_record;
mod settle;
mod sink;
mod spec_marks;
mod ticks;
mod transcript;
mod watch;
mod work;
pub(crate) use fallback::apply_wanted_agent;
pub(crate) use settle::status_after_agent;
pub(crate) use work::run_agent_iteration;

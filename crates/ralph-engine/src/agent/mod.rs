//! An iteration in which an agent's program works inside the sandbox: `prompt` is what it is told,
//! `work` lets it work and again where that helps, `session` is one start of it, `watch` listens to it
//! while it works, `talk` hands it messages, `sink` makes events of what it prints, `settle` says where
//! the run goes, `ticks` are the boxes that it says are done.

mod blocked;
mod messenger;
mod prompt;
mod session;
mod session_record;
mod settle;
mod sink;
mod ticks;
mod watch;
mod work;
pub(crate) use settle::status_after_agent;
pub(crate) use work::run_agent_iteration;

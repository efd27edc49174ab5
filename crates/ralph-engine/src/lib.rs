//! The run machine: it takes a plan to a verified commit on a branch, and survives being killed.
//!
//! - [`iteration`] is the loop, one page; its steps are in `steps`, `actions` and `delivery`.
//! - `clean_room` runs checks on an untouched checkout of a commit.
//! - `agent` is an iteration in which an agent's program works instead.
//! - [`run`] opens a run, prepares it, iterates until a verdict, obeys commands.
//! - [`journal`] numbers the events and syncs them; [`store`] knows the directories; [`durable`]
//!   writes files so that a crash leaves the old or the new one; `torn` puts half lines aside.
//! - `run_lock` decides which process may write to a run; [`creation`] keeps runs that are created at the same
//!   time apart and records their order.
//! - [`contract`] pins the task file and takes up what a person changes in it.
//! - [`workspace`] keeps the `.ralph/` files in the sandbox what the host says they are.
//! - [`git`] moves commits as bundles, so the host never runs git in a directory an agent can write.
//! - [`mailbox`] brings a person's commands to a running process.
//! - [`user_commands`] does what such a command asks for: notes, signs, the doctor, debugging.
//! - `live` does what cannot wait for that: it lets commands reach a host, and queues messages.
//! - [`preflight`] looks from inside of a sandbox whether its walls stand, before work goes on there.
//! - `running_time` waits without counting stops of the process.
//! - [`file_digests`] records the digests of the run's files when a process ends its work.
//! - [`replies`] reads what a model answered in an earlier run.

mod actions;
mod agent;
mod artifacts;
mod attend;
mod baseline;
mod capture;
mod check_results;
mod clean_room;
pub mod contract;
mod contract_change;
mod controls;
pub mod creation;
mod delivery;
mod doctor;
pub mod durable;
mod ending;
pub mod error;
pub mod file_digests;
pub mod git;
mod immediate_commands;
pub mod iteration;
pub mod journal;
pub mod mailbox;
mod messages;
mod pause;
pub mod preflight;
mod prepare;
mod rebuild;
mod recorder;
mod redaction;
pub mod replies;
mod reservation;
mod rules;
pub mod run;
mod run_lock;
pub mod run_thread;
mod running_time;
mod services;
mod steps;
pub mod store;
mod torn_lines;
mod transfer;
pub mod user_commands;
mod workbench;
pub mod workspace;

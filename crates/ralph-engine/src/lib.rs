//! Drives runs: from a plan to a verified commit on a branch, with recovery after a crash at any
//! point.
//!
//! - [`iteration`] is the loop, one page; its steps are in `steps`, `actions` and `delivery`.
//! - `clean_room` runs checks on an untouched checkout of a commit.
//! - `agent` is an iteration in which an agent's program works instead.
//! - [`run`] opens a run, prepares it, iterates until a verdict, and handles commands.
//! - [`journal`] numbers the events and syncs them; [`store`] defines the directories; [`durable`]
//!   writes files so that a crash leaves the old or the new one; `torn_lines` moves incomplete
//!   lines aside.
//! - `run_lock` decides which process may write to a run; [`creation`] serialises the creation of
//!   runs and records their order.
//! - [`contract`] pins the task file; `contract_change` puts the user's changes in force.
//! - [`workspace`] synchronises the `.ralph/` files in the sandbox with the host's copies.
//! - [`git`] transfers commits as bundles, so the host never runs git in a directory that an agent
//!   can write.
//! - [`mailbox`] delivers user commands to a running process; `controls` receives them.
//! - `recorder` writes the journal and the files of a run; `workbench` is its sandbox with the
//!   repository; `services` are the model, the agent, the gate and the source host.
//! - [`run_thread`] drives a run on a thread of its own; [`worker_pool`] limits the number of runs of one
//!   process that work at the same time, and `worker_wait` waits for a worker.
//! - [`user_commands`] performs user commands: notes, guardrails, the doctor, debugging.
//! - `immediate_commands` handles commands that cannot wait: allowed hosts and messages.
//! - [`preflight`] checks a sandbox from inside before work continues there.
//! - `running_time` waits without counting the time in which the process is suspended.
//! - [`file_digests`] records the digests of the run's files when a process ends its work.
//! - [`inspect`] reads files, tree and diff of a workspace while the run works.
//! - [`live_output`] writes the output of the running command or agent for readers that follow the
//!   run.
//! - [`setup`] installs the dependencies of a project in a sandbox.
//! - [`adoption`] rebuilds a run whose directory was lost.
//! - [`replies`] reads the recorded replies of an earlier run.

mod actions;
pub mod adoption;
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
pub mod edits;
mod ending;
pub mod error;
pub mod file_digests;
pub mod git;
mod immediate_commands;
pub mod inspect;
pub mod iteration;
pub mod journal;
pub mod linked_worktrees;
pub mod live_output;
pub mod mailbox;
mod messages;
mod pause;
pub mod preflight;
mod prepare;
mod rebuild;
mod recorder;
pub mod redaction;
pub mod replies;
mod reservation;
mod rules;
pub mod run;
#[cfg(test)]
mod run_fixture;
mod run_lock;
pub mod run_thread;
mod running_time;
#[cfg(test)]
mod scripted_host;
mod services;
pub mod setup;
mod steps;
pub mod store;
mod torn_lines;
mod transfer;
pub mod user_commands;
mod workbench;
pub mod worker_pool;
mod worker_wait;
pub mod workspace;

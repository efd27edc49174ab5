//! The run machine: it takes a plan to a verified commit on a branch, and survives being killed.
//!
//! - [`iteration`] is the loop, one page.
//! - [`run`] opens a run, prepares it, iterates until a verdict, obeys commands.
//! - [`journal`] numbers the events and syncs them; [`store`] knows the directories; [`durable`]
//!   writes files so that a crash leaves the old or the new one.
//! - [`workspace`] keeps the `.ralph/` files in the sandbox what the host says they are.
//! - [`git`] moves commits as bundles, so the host never runs git in a directory an agent can write.
//! - [`perform`] carries out actions, [`claims`] looks whether a claimed box is really done,
//!   [`verify`] judges a commit in a clean room, [`publish`] pushes and keeps the pull request.
//! - [`mailbox`] brings a person's commands to a running process.

mod ask;
pub mod capture;
pub mod claims;
mod close;
pub mod contract;
mod control;
pub mod durable;
pub mod error;
pub mod git;
pub mod iteration;
pub mod journal;
pub mod mailbox;
pub mod perform;
mod prepare;
pub mod publish;
mod pull_body;
pub mod replies;
pub mod run;
mod settle;
pub mod store;
mod transfer;
pub mod verify;
pub mod workspace;

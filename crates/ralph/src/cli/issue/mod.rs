//! `ralph issue` and `ralph poll`: work on the issues of a repository.

mod args;
mod command;
mod output;

pub(super) use args::{IssueArgs, PollArgs};
pub(super) use command::{poll, run};

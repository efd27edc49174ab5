//! A project in a temporary directory: a repository with a task file and a scripted model, and the
//! real program with a state directory of its own.

mod engine;
mod fixture;
mod lines;
mod live;

pub(crate) use fixture::{Ended, Project};
pub(crate) use lines::{
    actions, append, claiming, commit, commit_paths, control, finish, patch, run, work, write,
};
pub(crate) use live::Live;

//! A project in a temporary directory: a repository with a task file and a scripted model, and the
//! real program with its own state directory.

mod docker;
mod fixture;
mod live;
mod script_lines;

pub(crate) use fixture::{Project, ProjectOutput};
pub(crate) use live::LiveRun;
pub(crate) use script_lines::{
    actions, append, claiming, commit, commit_paths, control, finish, patch, run, work, write,
};

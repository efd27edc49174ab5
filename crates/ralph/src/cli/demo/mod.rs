//! `ralph demo`: real runs on small projects, with tasks and scripted models.
//!
//! `command` runs the first task and prints its results, `served_runs` starts the others on a server,
//! `project` creates the repositories, `location` is the directory of all files.

mod command;
mod location;
mod project;
mod served_runs;

pub(super) use command::{DemoArgs, run};

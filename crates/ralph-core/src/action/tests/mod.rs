//! Tests for parsing replies, from valid to broken ones. Path rules and commit messages are tested
//! in their own modules.

mod corpus;
mod cut_off;
mod repaired;
mod schema;

use std::time::Duration;

use super::*;
use crate::path::WorkspacePath;

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

fn run(command: &str) -> Action {
    Action::Run {
        command: command.into(),
        cwd: None,
        timeout: Duration::from_mins(10),
    }
}

fn response(actions: Vec<Action>) -> Response {
    Response {
        summary: "s".into(),
        actions,
        claims: Claims::default(),
        repaired: false,
    }
}

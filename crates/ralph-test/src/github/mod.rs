//! A GitHub on loopback: it has state, records every exchange, and can fail on request.
//!
//! The files in `bodies` are GitHub's own examples from its `OpenAPI` description (MIT licence); the
//! operations fill in the state. The description lists an account as both a user and an enterprise, so it has the
//! fields of both. `routes` finds the operation: `apps`, `repository`, `pulls`, `issues`, `checks` or
//! `graphql`; `git` serves bare repositories with `git http-backend`.

mod apps;
mod checks;
mod faults;
mod git;
mod graphql;
mod issues;
mod judge;
mod pulls;
mod repo;
mod repository;
mod response;
mod routes;
mod server;
mod state;
mod wire;

pub use faults::{FaultRule, GitHubFault};
pub use judge::{judge_github, run_github_client, skip_without_github_tools};
pub use repo::{
    FakeCheck, FakeIssue, FakeIssueComment, FakeLabel, FakePull, FakeRepo, FakeReview, FakeStatus,
};
pub use server::FakeGitHub;
pub use state::{FakeGitHubState, FakeGitHubToken, GitHubExchange};

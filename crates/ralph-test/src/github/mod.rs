//! A GitHub on loopback: it has state, records every exchange, and can fail on request.
//!
//! The files in `bodies` are GitHub's own examples from its `OpenAPI` description (MIT licence); `routes`
//! fills in the state. The description lists an account as both a user and an enterprise, so it has the fields of
//! both. A new operation is one line in `routes::respond` and a function.

mod routes;
mod server;
mod state;

pub use server::FakeGitHub;
pub use state::{FakeGitHubState, FakeGitHubToken, GitHubExchange, GitHubFault};

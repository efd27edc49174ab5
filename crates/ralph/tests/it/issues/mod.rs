//! `ralph issue` and `ralph poll` against a GitHub on loopback, with an agent that is a script.

mod fixture;
mod flags;
mod one_issue;
mod polling;

//! `ralph issue` and `ralph poll` against a GitHub on loopback, with an agent that is a script.

mod addresses;
mod checks;
mod fixture;
mod flags;
mod lost_responses;
mod one_issue;
mod polling;

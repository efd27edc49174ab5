//! The source host GitHub against a GitHub on loopback that keeps state and loses responses.

mod checks;
mod fixture;
mod issues;
mod judge;
mod limits;
mod lost;
mod pulls;
mod tokens;

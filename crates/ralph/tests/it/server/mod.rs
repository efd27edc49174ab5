//! Tests of `ralph serve` and of commands that use a running server.

mod fixture;
mod serve;

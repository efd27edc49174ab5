//! Tests of `ralph serve` and of commands that use a running server.

mod demo;
mod fixture;
mod serve;

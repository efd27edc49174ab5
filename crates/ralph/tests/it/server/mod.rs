//! Tests of `ralph serve` and of commands that use a running server.

mod api_client;
mod demo;
mod endings;
mod fixture;
mod handing_over;
mod serve;
mod tasks;

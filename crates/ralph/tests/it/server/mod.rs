//! Tests of `ralph serve` and of commands that use a running server.

mod api_client;
mod demo;
mod fixture;
mod handing_over;
mod serve;

//! Tests of the edge of the server: which requests are accepted, and what all responses have.

mod browsers;
mod chromium;
mod exposure;
mod hosts;
mod interface;
mod limits;
mod responses;
mod shares;
mod sign_in;
mod tokens;

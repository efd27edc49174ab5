//! Tests of the edge of the server: which requests are accepted, and what all responses have.

mod sign_in;

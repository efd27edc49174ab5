//! TLS: reading who a connection is for, speaking it to the outside, and opening it where that was asked.

mod authority;
mod hello;
mod outside;

pub(crate) use authority::Authority;
pub use authority::CertificateError;
pub(crate) use hello::{Hello, UNRECOGNIZED_NAME, read as read_hello};
pub(crate) use outside::client_config;
pub use outside::system_roots;

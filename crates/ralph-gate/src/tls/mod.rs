//! TLS: reads the target of a connection, connects to upstreams and terminates TLS for inspected
//! hosts.

mod authority;
mod client_config;
mod client_hello;

pub(crate) use authority::CertificateAuthority;
pub use authority::CertificateError;
pub(crate) use client_config::client_config;
pub use client_config::system_roots;
pub(crate) use client_hello::{TlsClientHello, UNRECOGNIZED_NAME, read_client_hello as read_hello};

//! The Docker Engine: connection, system information and errors.
//!
//! Uses the Engine API directly; no `docker` program is needed. Nothing here reads the environment:
//! the caller passes in `DOCKER_HOST`.
//!
//! - `address` parses the address; `engine` is the connection, which limits the time of every call
//!   and converts every failure to a [`DockerError`].
//! - [`images`] builds, pulls and inspects images; `info` is the system information.
//! - `error` describes problems with suggested fixes; `socket` finds the group that may use a
//!   socket.

mod address;
mod engine;
mod error;
pub mod images;
mod info;
mod socket;

pub use address::DockerAddress;
pub use engine::{CALL_TIMEOUT, DockerEngine};
pub use error::DockerError;
pub use info::{DockerInfo, go_architecture};

//! The Docker Engine: one connection, what it says about itself, and what can be wrong with it.
//!
//! The Engine API is spoken directly; no `docker` program is needed. Nothing here reads the
//! environment: the caller hands in what `DOCKER_HOST` says.
//!
//! - `address` is where the engine listens; `engine` is the connection, and the one door through
//!   which every call is bounded in time and every failure becomes an [`DockerError`].
//! - [`images`] builds, pulls and looks at images; `facts` is what an engine tells about its machine.
//! - `error` names what a person can mend, with the way to do it; `socket` says who may use a socket.

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

//! Decisions about a run's pull request: the checks of the source host, overlaps with other pull
//! requests, waits for the host, and text that is safe to publish.
//!
//! The engine asks the source host and acts; everything it decides is decided here. [`PublishPolicy`]
//! combines `ralph.toml` and the task file, [`ci`] judges the checks of a commit, [`overlap`]
//! compares changed files, [`host_wait`] limits waits for a host, [`neutral`] removes effects of
//! text that a model or an issue contains.

pub mod ci;
pub mod neutral;
pub mod overlap;
mod patience;
mod policy;

pub use patience::{MAX_HOST_WAIT, host_wait};
pub use policy::{CiOverrides, CiPolicy, OverlapAction, PublishPolicy};

//! The outside of a run, one folder per port: models and source hosts.
//!
//! - [`model`] answers prompts without a network, from a script or from an earlier run.
//! - [`scm`] is where branches are pushed and pull requests live.

pub mod model;
pub mod scm;

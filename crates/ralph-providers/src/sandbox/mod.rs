//! Sandboxes: where commands run and files live.
//!
//! - [`LocalProvider`] runs commands as processes of the user in a directory of its own. It keeps
//!   nothing from the machine; it needs nothing either.

mod convert;
mod local;

pub use local::LocalProvider;

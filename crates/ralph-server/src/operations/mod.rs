//! Long operations of the machine, such as a selftest or the build of an image.
//!
//! A request starts one and returns at once; its progress is read with its id. Each can be cancelled, and the
//! number of operations, of their log lines and of remembered ends is limited.

mod entry;
mod handle;
mod registry;

pub(crate) use entry::{Operation, OperationKind};
pub(crate) use registry::{Operations, until_cancelled};

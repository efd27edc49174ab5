//! The stream of one run: the records of its journal, and the output of its running command.
//!
//! [`RunTail`] follows the files for all readers of the run, a [`RunReader`] is the position of one
//! client. `frames` encodes, `line_search` finds the start of a stream.

mod frames;
mod line_search;
mod reader;
mod tail;

pub(super) use frames::RecordEncoder;
pub(super) use reader::RunReader;
pub(crate) use reader::{OutputStart, RunStreamStart};
pub(super) use tail::{Growth, RunTail};

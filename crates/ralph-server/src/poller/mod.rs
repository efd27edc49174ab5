//! The poller of issues inside the server: works on the issues of one repository until it is stopped.

mod control;
mod output;
mod report;

pub(crate) use control::{Poller, PollerStart};
pub(crate) use report::PollerReport;

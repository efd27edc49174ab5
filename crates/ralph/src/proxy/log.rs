//! A line for each request: its method, its path, the status of its answer. Nothing else.

use std::io::Write as _;

use ralph_gate::{Audit, Blocked, Charge, Sink};

/// Writes a line for each request on standard error.
#[derive(Debug, Clone, Copy)]
pub struct RequestLog;

impl Sink for RequestLog {
    fn audit(&self, record: Audit) {
        // There is nobody left to tell when this does not work.
        writeln!(std::io::stderr(), "{}", line(&record)).ok();
    }

    fn blocked(&self, _: Blocked) {}

    fn charged(&self, _: Charge) {}
}

fn line(record: &Audit) -> String {
    let request = record.request.as_deref().unwrap_or("-");
    match record.status {
        Some(status) => format!("ralph: {request} {status}"),
        None => format!("ralph: {request} -"),
    }
}

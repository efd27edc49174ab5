//! Works on runs: starts them, continues them, and parks them when the server stops.
//!
//! Each run has a thread and a runtime of its own, so a run that panics or waits for its disk does not
//! affect the others or the requests. A pool limits how many of them work at the same time.
//!
//! - [`Supervisor`] is the entry point; `run_work` is the thread of one run.
//! - `start_request` is a request for a run with the user's answers, `prepare` plans and creates it.
//! - `registry` records the runs of the server in a file, `recovery` continues them after a restart.
//! - `idempotency` records which requests created which run.

mod idempotency;
mod pool_supervisor;
mod prepare;
mod recovery;
mod registry;
mod run_work;
mod start_request;

pub(crate) use idempotency::{IdempotencyKey, RequestRecord};
pub(crate) use pool_supervisor::Supervisor;
pub(crate) use prepare::{StartError, StartPreview, Started};
pub(crate) use registry::QueueReport;
pub(crate) use run_work::Continuation;
pub(crate) use start_request::{
    GivenAnswers, RecordedQuestions, StartQuestion, StartRequest, TaskSource,
};

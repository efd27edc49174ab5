//! The description of an operation.

use jiff::Timestamp;
use ralph_app::AppError;
use ralph_app::checks::CheckEntry;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A long operation.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) kind: OperationKind,
    pub(crate) state: OperationState,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    /// The finished checks of a preflight or a selftest.
    pub(crate) checks: Vec<CheckEntry>,
    pub(crate) notes: Vec<String>,
    /// The last lines of progress.
    pub(crate) log: Vec<String>,
    /// The result of an operation that succeeded: the body of the matching `GET`, if there is one.
    pub(crate) result: Option<Value>,
    pub(crate) problem: Option<OperationProblem>,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationKind {
    Preflight,
    Selftest,
    ImageBuild,
    ImagePull,
    DiskCleanup,
    SandboxCleanup,
    Adoption,
}

/// The progress of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationState {
    Running,
    /// It ended, and every check passed.
    Succeeded,
    /// It failed, or a check did not pass.
    Failed,
    Cancelled,
}

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct OperationProblem {
    pub(crate) what: String,
    pub(crate) why: String,
    pub(crate) fix: String,
}

impl From<AppError> for OperationProblem {
    fn from(error: AppError) -> Self {
        Self {
            what: error.what,
            why: error.why,
            fix: error.fix,
        }
    }
}

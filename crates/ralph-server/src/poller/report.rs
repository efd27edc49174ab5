//! The state of the poller.

use jiff::Timestamp;
use ralph_app::issues::WaitingIssue;
use serde::Serialize;
use utoipa::ToSchema;

/// The state of the poller of this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PollerReport {
    pub(crate) state: PollerState,
    /// `owner/name`; null until the repository is known.
    pub(crate) repository: Option<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) interval_seconds: u64,
    /// The number of issues at the same time.
    pub(crate) workers: usize,
    /// The issues that are being worked on.
    pub(crate) working: Vec<u64>,
    /// The issues that wait for others.
    pub(crate) waiting: Vec<PollerWait>,
    pub(crate) last_look: Option<Timestamp>,
    /// Why the last look or the poller failed.
    pub(crate) problem: Option<String>,
    /// The last messages, oldest first.
    pub(crate) messages: Vec<PollerMessage>,
}

/// Whether the poller works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PollerState {
    Stopped,
    Running,
    /// It starts no more work, and parks the runs that it works on.
    Stopping,
    /// It ended with an error.
    Failed,
}

/// An issue that waits for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PollerWait {
    pub(crate) number: u64,
    pub(crate) waits_for: Vec<u64>,
}

/// A message of the poller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PollerMessage {
    pub(crate) at: Timestamp,
    /// The issue that it is about.
    pub(crate) number: Option<u64>,
    pub(crate) run: Option<String>,
    pub(crate) text: String,
}

impl PollerReport {
    /// Describes a poller that was never started.
    pub(super) fn stopped() -> Self {
        Self {
            state: PollerState::Stopped,
            repository: None,
            started_at: None,
            ended_at: None,
            interval_seconds: 0,
            workers: 0,
            working: Vec::new(),
            waiting: Vec::new(),
            last_look: None,
            problem: None,
            messages: Vec::new(),
        }
    }
}

impl From<&WaitingIssue> for PollerWait {
    fn from(issue: &WaitingIssue) -> Self {
        Self {
            number: issue.number,
            waits_for: issue.unmet.on.clone(),
        }
    }
}

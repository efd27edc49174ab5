//! The part of a front end that shows the work on issues.

use std::time::Duration;

use async_trait::async_trait;
use ralph_core::run::RunStatus;
use serde::Serialize;
use tokio::sync::watch;

use super::comments::issue_list;
use crate::error::AppError;
use crate::image::ImageProgress;
use crate::runs::{ReadyRun, StartQuestions};

/// Shows the work on issues and drives their runs.
#[async_trait(?Send)]
pub trait IssueFrontEnd: Send + Sync {
    /// Shows an event.
    fn report(&self, event: &IssueEvent);

    /// Returns the questions that the start of a run may raise.
    fn questions(&self) -> &dyn StartQuestions;

    /// Shows the progress of an image.
    fn show_image_progress(&self, progress: ImageProgress);

    /// Drives a run and shows it.
    async fn drive(
        &self,
        run: ReadyRun,
        interrupted: watch::Receiver<bool>,
    ) -> Result<RunStatus, AppError>;
}

/// The issues that another one waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmetDependencies {
    /// The issues that are not done.
    pub on: Vec<u64>,
    /// Those of them that do not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<u64>,
}

impl UnmetDependencies {
    /// Returns the issues in words: `#2, #3; #3 does not exist`.
    pub fn describe(&self) -> String {
        let on = issue_list(&self.on);
        match self.unknown.len() {
            0 => on,
            1 => format!("{on}; {} does not exist", issue_list(&self.unknown)),
            _ => format!("{on}; {} do not exist", issue_list(&self.unknown)),
        }
    }
}

/// An issue that waits for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitingIssue {
    pub number: u64,
    #[serde(flatten)]
    pub unmet: UnmetDependencies,
}

/// An event of the work on issues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueEvent {
    /// Polling starts.
    Watching {
        repository: String,
        label: String,
        authors: Vec<String>,
        interval: Duration,
    },
    /// The poller has looked for issues.
    Looked {
        waiting: Vec<WaitingIssue>,
        /// The issues that are being worked on.
        working: Vec<u64>,
        /// The time until it looks again.
        next: Duration,
    },
    /// A look failed; the next one follows.
    LookFailed(AppError),
    /// The dependencies of an issue are done.
    Unblocked { number: u64 },
    /// A run of an issue starts or continues.
    Started {
        number: u64,
        title: String,
        branch: String,
        run: String,
        is_resumed: bool,
    },
    /// The user should know this before the work starts.
    Notice { number: u64, message: String },
    /// The work on an issue has ended.
    Ended { number: u64, end: IssueEnd },
}

/// The result of the work on an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueEnd {
    /// All steps are done, and the clean room is green.
    Done {
        /// The address of the pull request.
        pull: Option<String>,
    },
    /// The issue was done before.
    AlreadyDone,
    /// The run failed or was stopped.
    Failed { reason: String },
    /// A human must decide something.
    NeedsAttention { reason: String },
    /// Other issues must be done first.
    Blocked(UnmetDependencies),
    /// A signal ended the work; the issue is ready again.
    Interrupted,
    /// The issue was not touched.
    Refused(AppError),
}

impl IssueEnd {
    /// Returns the name for scripts.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done { .. } | Self::AlreadyDone => "done",
            Self::Failed { .. } => "failed",
            Self::NeedsAttention { .. } => "needs_attention",
            Self::Blocked(_) => "blocked",
            Self::Interrupted => "interrupted",
            Self::Refused(_) => "refused",
        }
    }
}

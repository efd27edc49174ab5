//! A request for a new run, with the user's answers to the questions of a start.

use std::path::PathBuf;

use ralph_app::planning::RunRequest;
use ralph_app::runs::{StartQuestions, UnfinishedRun, UnfinishedRunPolicy};
use ralph_app::trust::TrustReview;
use ralph_core::image::ImageEffort;

/// A request for a new run.
#[derive(Debug, Clone)]
pub(crate) struct StartRequest {
    /// The working directory, whose configuration and `.env` count.
    pub(crate) directory: PathBuf,
    pub(crate) request: RunRequest,
    pub(crate) effort: ImageEffort,
    pub(crate) unfinished_runs: UnfinishedRunPolicy,
    pub(crate) answers: GivenAnswers,
}

/// The answers that a request contains: the server cannot ask the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GivenAnswers {
    /// The user has seen the proposals of the repository and approves them.
    pub(crate) approves_proposals: bool,
    /// The user lets an agent work without isolation.
    pub(crate) accepts_local: bool,
}

impl StartQuestions for GivenAnswers {
    fn approve(&self, _review: &TrustReview) -> bool {
        self.approves_proposals
    }

    fn accept_local(&self, _reason: &str) -> bool {
        self.accepts_local
    }

    fn continue_run(&self, _run: &UnfinishedRun) -> bool {
        false
    }
}

//! A request for a new run, with the user's answers to the questions of a start.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ralph_app::planning::RunRequest;
use ralph_app::runs::{StartQuestions, UnfinishedRun, UnfinishedRunChoice};
use ralph_app::server::environment::CallerEnvironment;
use ralph_app::trust::{TrustReview, TrustReviewReport};
use ralph_core::id::{Digest, RunId};
use ralph_core::image::ImageEffort;
use ralph_core::task::RunMode;
use serde::Serialize;
use utoipa::ToSchema;

/// A request for a new run.
#[derive(Debug, Clone)]
pub(crate) struct StartRequest {
    /// The working directory, whose configuration and `.env` count.
    pub(crate) directory: PathBuf,
    pub(crate) source: TaskSource,
    /// The options; the file is that of the source.
    pub(crate) request: RunRequest,
    pub(crate) mode: Option<RunMode>,
    pub(crate) effort: ImageEffort,
    /// What to do if the task has an unfinished run.
    pub(crate) unfinished: Option<UnfinishedRunChoice>,
    pub(crate) answers: GivenAnswers,
    /// The variables of a command that hands its run over.
    pub(crate) environment: Option<CallerEnvironment>,
}

/// Where the task of a run comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskSource {
    /// A file, absolute or relative to the directory.
    File(PathBuf),
    /// The text of a task file.
    Text(String),
    /// One sentence.
    Sentence(String),
}

impl TaskSource {
    /// Returns a name for the thread of the run.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(file) => file.display().to_string(),
            Self::Text(_) => "of a text".to_owned(),
            Self::Sentence(_) => "of a sentence".to_owned(),
        }
    }
}

/// The answers that a request contains: the server cannot ask the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GivenAnswers {
    /// The digest of the proposals that the user has seen and approves.
    pub(crate) approved_proposals: Option<String>,
    /// The user lets an agent work without isolation.
    pub(crate) accepts_local: bool,
}

/// A question that the start of a run raised, and that the request did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum StartQuestion {
    /// Whether the user approves the proposals of the repository.
    ApproveProposals {
        /// The answer that approves exactly these proposals.
        digest: String,
        proposals: TrustReviewReport,
    },
    /// Whether the user lets an agent work without isolation.
    AcceptLocal { reason: String },
    /// Whether the unfinished run of the task continues.
    UnfinishedRun {
        #[schema(value_type = String)]
        run: RunId,
        status: String,
    },
}

impl StartQuestion {
    /// Returns the field of the request that answers the question.
    pub(crate) fn field(&self) -> &'static str {
        match self {
            Self::ApproveProposals { .. } => "answers.approved_proposals",
            Self::AcceptLocal { .. } => "answers.accept_local",
            Self::UnfinishedRun { .. } => "unfinished_run",
        }
    }
}

/// Answers the questions of a start from a request, and keeps the one that it does not answer.
#[derive(Debug)]
pub(crate) struct RecordedQuestions {
    answers: GivenAnswers,
    unanswered: Mutex<Option<StartQuestion>>,
}

impl RecordedQuestions {
    pub(crate) fn new(answers: GivenAnswers) -> Self {
        Self {
            answers,
            unanswered: Mutex::default(),
        }
    }

    /// Returns the question that was not answered.
    pub(super) fn take(&self) -> Option<StartQuestion> {
        self.lock().take()
    }

    fn refuse(&self, question: StartQuestion) -> bool {
        *self.lock() = Some(question);
        false
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<StartQuestion>> {
        self.unanswered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl StartQuestions for RecordedQuestions {
    fn approve(&self, review: &TrustReview) -> bool {
        let proposals = TrustReviewReport::new(review);
        let digest = proposals_digest(&proposals);
        self.answers.approved_proposals.as_ref() == Some(&digest)
            || self.refuse(StartQuestion::ApproveProposals { digest, proposals })
    }

    fn accept_local(&self, reason: &str) -> bool {
        self.answers.accepts_local
            || self.refuse(StartQuestion::AcceptLocal {
                reason: reason.to_owned(),
            })
    }

    fn continue_run(&self, run: &UnfinishedRun) -> bool {
        self.refuse(StartQuestion::UnfinishedRun {
            run: run.plan.run.clone(),
            status: run.status.to_owned(),
        })
    }
}

/// Returns the digest of the proposals that wait for an approval: an approval is for what the user saw.
fn proposals_digest(proposals: &TrustReviewReport) -> String {
    let mut text = proposals.repository.clone();
    for entry in &proposals.pending {
        for part in [&entry.file, &entry.key, &entry.value] {
            text.push('\0');
            text.push_str(part);
        }
    }
    Digest::compute(text.as_bytes()).to_string()
}

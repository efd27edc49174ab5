//! Records the events of the poller for requests, and drives its runs.

use async_trait::async_trait;
use ralph_app::AppError;
use ralph_app::image::ImageProgress;
use ralph_app::issues::{IssueEnd, IssueEvent, IssueFrontEnd};
use ralph_app::runs::{ReadyRun, StartQuestions};
use ralph_core::run::RunStatus;
use tokio::sync::watch;

use super::control::Poller;
use super::report::{PollerMessage, PollerWait};
use crate::supervisor::{GivenAnswers, RecordedQuestions};

/// The number of messages that are remembered.
const MAX_MESSAGES: usize = 100;

/// The front end of the poller: it answers no question, because no user is there.
pub(super) struct PollerOutput {
    poller: Poller,
    answers: RecordedQuestions,
}

impl PollerOutput {
    pub(super) fn new(poller: Poller) -> Self {
        Self {
            poller,
            answers: RecordedQuestions::new(GivenAnswers::default()),
        }
    }

    fn add_message(&self, number: Option<u64>, run: Option<&str>, text: &str) {
        let app = self.poller.app();
        let message = PollerMessage {
            at: app.clock().now(),
            number,
            run: run.map(str::to_owned),
            text: app.redactor().redact(text).into_owned(),
        };
        tracing::info!(number, run, text = message.text, "the poller reports");
        self.poller.update(|report| {
            if report.messages.len() == MAX_MESSAGES {
                report.messages.remove(0);
            }
            report.messages.push(message);
        });
    }
}

fn describe_end(end: &IssueEnd) -> String {
    match end {
        IssueEnd::Done { pull: Some(pull) } => format!("done: {pull}"),
        IssueEnd::Done { pull: None } => "done".to_owned(),
        IssueEnd::AlreadyDone => "done already".to_owned(),
        IssueEnd::Failed { reason } => format!("failed: {reason}"),
        IssueEnd::NeedsAttention { reason } => format!("needs attention: {reason}"),
        IssueEnd::Blocked(unmet) => format!("waits for {}", unmet.describe()),
        IssueEnd::Interrupted => "ready again: the work was interrupted".to_owned(),
        IssueEnd::Refused(error) => error.to_string(),
    }
}

#[async_trait(?Send)]
impl IssueFrontEnd for PollerOutput {
    fn report(&self, event: &IssueEvent) {
        let now = self.poller.app().clock().now();
        match event {
            IssueEvent::Watching { repository, .. } => {
                self.poller
                    .update(|report| report.repository = Some(repository.clone()));
            }
            IssueEvent::Looked {
                waiting, working, ..
            } => self.poller.update(|report| {
                report.last_look = Some(now);
                report.problem = None;
                report.working.clone_from(working);
                report.waiting = waiting.iter().map(PollerWait::from).collect();
            }),
            IssueEvent::LookFailed(error) => {
                let error = error.clone().redacted(&self.poller.app().redactor());
                self.poller.update(|report| {
                    report.last_look = Some(now);
                    report.problem = Some(error.to_string());
                });
            }
            IssueEvent::Unblocked { number } => {
                self.add_message(Some(*number), None, "ready: its dependencies are done");
            }
            IssueEvent::Started {
                number,
                title,
                run,
                is_resumed,
                ..
            } => {
                let verb = if *is_resumed { "continues" } else { "starts" };
                self.add_message(Some(*number), Some(run), &format!("{verb}: {title}"));
            }
            IssueEvent::Notice { number, message } => {
                self.add_message(Some(*number), None, message);
            }
            IssueEvent::Ended { number, end } => {
                self.poller
                    .update(|report| report.working.retain(|working| working != number));
                self.add_message(Some(*number), None, &describe_end(end));
            }
        }
    }

    fn questions(&self) -> &dyn StartQuestions {
        &self.answers
    }

    fn show_image_progress(&self, progress: ImageProgress) {
        tracing::debug!(?progress, "the image of an issue's run");
    }

    async fn drive(
        &self,
        run: ReadyRun,
        interrupted: watch::Receiver<bool>,
    ) -> Result<RunStatus, AppError> {
        run.drive(interrupted).await
    }
}

//! A model that repeats the recorded replies of an earlier run.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use ralph_core::ports::{FinishReason, Model, ModelError, ModelReply, ModelRequest, TokenUsage};

/// A recorded reply of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedReply {
    /// The iteration of the request.
    pub iteration: u32,
    /// The number of the call within its iteration.
    pub attempt: u32,
    /// Byte for byte; `None` if only a redacted copy was stored.
    pub text: Option<String>,
    /// The recorded token usage.
    pub usage: TokenUsage,
}

/// Replies to prompts with the replies of an earlier run, regardless of their content.
#[derive(Debug)]
pub struct ReplayModel {
    name: String,
    replies: Vec<RecordedReply>,
    next: AtomicUsize,
}

impl ReplayModel {
    /// Creates a model from the replies of a run, sorted by iteration and attempt; skips the first
    /// `used`.
    pub fn new(run: &str, mut replies: Vec<RecordedReply>, used: usize) -> Self {
        replies.sort_by_key(|reply| (reply.iteration, reply.attempt));
        Self {
            name: format!("replay:{run}"),
            replies,
            next: AtomicUsize::new(used),
        }
    }
}

#[async_trait]
impl Model for ReplayModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn ask_once(&self, _request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let recorded = self.replies.get(index).ok_or_else(|| ModelError::Broken {
            model: self.name.clone(),
            message: "the recorded run has no more replies".into(),
            fix: None,
        })?;
        let text = recorded.text.clone().ok_or_else(|| ModelError::Broken {
            model: self.name.clone(),
            message: format!(
                "reply {} of the recorded run was redacted when it was stored, so it cannot be replayed",
                index + 1
            ),
            fix: None,
        })?;
        Ok(ModelReply {
            text,
            usage: recorded.usage,
            finish: FinishReason::Complete,
            answered_by: None,
            billed: None,
            source: Some(format!("reply {}", index + 1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(iteration: u32, attempt: u32, text: &str) -> RecordedReply {
        RecordedReply {
            iteration,
            attempt,
            text: Some(text.into()),
            usage: TokenUsage {
                input_tokens: u64::from(iteration),
                output_tokens: u64::from(attempt),
                ..TokenUsage::default()
            },
        }
    }

    /// Sends one request and returns text, source and tokens, or the error.
    async fn ask(model: &ReplayModel) -> String {
        let request = ModelRequest {
            system: "anything".into(),
            user: "at all".into(),
            schema: None,
            max_output_tokens: None,
        };
        match model.ask_once(&request).await {
            Ok(reply) => {
                assert_eq!(reply.finish, FinishReason::Complete);
                format!(
                    "{} ({}, {})",
                    reply.text,
                    reply.source.unwrap(),
                    reply.usage.total()
                )
            }
            Err(error) => error.to_string(),
        }
    }

    const NO_MORE: &str = "model `replay:r-1` cannot answer: the recorded run has no more replies";

    #[tokio::test]
    async fn replies_are_ordered_by_iteration_and_attempt() {
        // The order of a directory listing: `10` before `2`.
        let replies = vec![
            recorded(10, 1, "d"),
            recorded(1, 1, "a"),
            recorded(2, 2, "c"),
            recorded(2, 1, "b"),
        ];
        let model = ReplayModel::new("r-1", replies, 0);
        assert_eq!(model.name(), "replay:r-1");
        assert_eq!(ask(&model).await, "a (reply 1, 2)");
        assert_eq!(ask(&model).await, "b (reply 2, 3)");
        assert_eq!(ask(&model).await, "c (reply 3, 4)");
        assert_eq!(ask(&model).await, "d (reply 4, 11)");
        assert_eq!(ask(&model).await, NO_MORE);
        assert_eq!(ask(&model).await, NO_MORE);
    }

    #[tokio::test]
    async fn a_redacted_reply_is_not_replayed() {
        let redacted = RecordedReply {
            text: None,
            ..recorded(1, 1, "")
        };
        let model = ReplayModel::new("r-1", vec![redacted, recorded(2, 1, "b")], 0);
        assert_eq!(
            ask(&model).await,
            "model `replay:r-1` cannot answer: reply 1 of the recorded run was redacted when it was \
             stored, so it cannot be replayed"
        );
        assert_eq!(ask(&model).await, "b (reply 2, 3)");
    }

    #[tokio::test]
    async fn a_restart_continues_after_the_used_replies() {
        let replies = vec![recorded(1, 1, "a"), recorded(2, 1, "b")];
        let model = ReplayModel::new("r-1", replies.clone(), 1);
        assert_eq!(ask(&model).await, "b (reply 2, 3)");
        assert_eq!(ask(&model).await, NO_MORE);
        assert_eq!(ask(&ReplayModel::new("r-1", replies, 2)).await, NO_MORE);
        assert_eq!(ask(&ReplayModel::new("r-1", Vec::new(), 5)).await, NO_MORE);
    }
}

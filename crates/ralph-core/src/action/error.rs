//! Reasons to reject a reply, worded so that the model can correct it.

use std::fmt;

use super::limits::{MAX_DEPTH, MAX_PROBLEMS, MAX_REPLY_BYTES};

/// The reason why a reply is rejected as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// Longer than [`MAX_REPLY_BYTES`].
    #[error("the reply has {0} bytes, at most {MAX_REPLY_BYTES} are allowed")]
    TooLong(usize),
    /// Contains no JSON object.
    #[error("the reply contains no JSON object; answer with one JSON object and nothing else")]
    NoObject,
    /// Ends before its JSON object does.
    #[error(
        "the reply ends before its JSON object is complete, so nothing was executed; send fewer or smaller actions"
    )]
    Truncated,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("the JSON is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Not valid JSON, and a repair would have been a guess.
    #[error("the JSON is not valid, so nothing was executed: {0}")]
    Malformed(String),
    /// Has the same key twice in one object, which is ambiguous.
    #[error("the key `{0}` appears twice in one object, so nothing was executed")]
    DuplicateKey(String),
    /// Contains two or more different answers.
    #[error(
        "the reply contains several different answers, so nothing was executed: it is unclear which one counts; send exactly one JSON object and nothing else"
    )]
    SeveralAnswers,
    /// Contains only an example or a quotation of an answer.
    #[error(
        "the reply contains only an example or a quotation of an answer, so nothing was executed; send one JSON object with real values instead of placeholders"
    )]
    OnlyExample,
    /// Valid JSON that violates the schema.
    #[error("the reply does not follow the schema, so nothing was executed:{0}")]
    Schema(ReplyProblems),
}

/// One violation of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyProblem {
    /// The location in the JSON, such as `actions[2].timeout_s`.
    pub path: String,
    pub message: String,
}

impl fmt::Display for ReplyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All violations of the schema in a reply, the first [`MAX_PROBLEMS`] of them with a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyProblems {
    listed: Vec<ReplyProblem>,
    unlisted: usize,
}

impl ReplyProblems {
    /// Returns the recorded problems, in the order of the reply.
    pub fn listed(&self) -> &[ReplyProblem] {
        &self.listed
    }

    /// Returns the number of problems beyond the recorded ones.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    pub(super) fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        if self.listed.len() == MAX_PROBLEMS {
            self.unlisted += 1;
            return;
        }
        self.listed.push(ReplyProblem {
            path: path.into(),
            message: message.into(),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}

impl fmt::Display for ReplyProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.listed {
            write!(f, "\n- {problem}")?;
        }
        if self.unlisted > 0 {
            write!(f, "\n- and {} more", self.unlisted)?;
        }
        Ok(())
    }
}

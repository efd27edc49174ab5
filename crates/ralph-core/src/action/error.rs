//! Why a reply is not executed, in words that help a model to do better next time.

use std::fmt;

use super::limits::{MAX_DEPTH, MAX_PROBLEMS, MAX_REPLY_BYTES};

/// Why nothing of a reply is executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// Longer than [`MAX_REPLY_BYTES`].
    #[error("the reply has {0} bytes, at most {MAX_REPLY_BYTES} are allowed")]
    TooLong(usize),
    /// Holds nothing that begins like a JSON object.
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
    /// Not JSON, and not repaired because that would have been a guess.
    #[error("the JSON is not valid, so nothing was executed: {0}")]
    Malformed(String),
    /// An object has the same key twice, so that it is unclear which one is meant.
    #[error("the key `{0}` appears twice in one object, so nothing was executed")]
    DuplicateKey(String),
    /// Holds two different answers or more.
    #[error(
        "the reply contains several different answers, so nothing was executed: it is unclear which one counts; send exactly one JSON object and nothing else"
    )]
    SeveralAnswers,
    /// Holds nothing but an example or a quotation of an answer.
    #[error(
        "the reply contains only an example or a quotation of an answer, so nothing was executed; send one JSON object with real values instead of placeholders"
    )]
    OnlyExample,
    /// Valid JSON that does not follow the contract.
    #[error("the reply does not follow the schema, so nothing was executed:{0}")]
    Schema(ReplyProblems),
}

/// One place where a reply does not follow the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyProblem {
    /// Where in the JSON, such as `actions[2].timeout_s`.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for ReplyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All places where a reply does not follow the contract, the first [`MAX_PROBLEMS`] of them in
/// words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyProblems {
    listed: Vec<ReplyProblem>,
    unlisted: usize,
}

impl ReplyProblems {
    /// Returns the problems in words, in the order of the reply.
    pub fn listed(&self) -> &[ReplyProblem] {
        &self.listed
    }

    /// Returns how many more there are.
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

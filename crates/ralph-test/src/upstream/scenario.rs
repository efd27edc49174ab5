//! What a fake upstream says.

use std::collections::BTreeMap;
use std::time::Duration;

use ralph_core::ports::Usage;
use serde_json::Value;

/// A protocol that the upstream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    /// `POST /v1/messages`, Anthropic's.
    Messages,
    /// `POST /v1/responses`, OpenAI's newer one.
    Responses,
    /// `POST /v1/chat/completions`, OpenAI's older one, which many others speak.
    Chat,
}

/// What is said in answer to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub(super) answer: Answer,
    pub(super) usage: Usage,
    pub(super) headers: Vec<(String, String)>,
    pub(super) before: Duration,
    pub(super) within: Duration,
}

/// The kinds of answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Text(String),
    Tool {
        name: String,
        input: Value,
    },
    Error {
        status: u16,
        message: String,
    },
    Body {
        status: u16,
        body: Value,
    },
    Cut(String),
    Fail {
        text: String,
        status: u16,
        message: String,
    },
}

impl Step {
    /// Says something, and ends its turn.
    pub fn text(text: &str) -> Self {
        Self::of(Answer::Text(text.into()))
    }

    /// Asks for a tool.
    pub fn tool(name: &str, input: Value) -> Self {
        let name = name.into();
        Self::of(Answer::Tool { name, input })
    }

    /// Refuses with a status, in the form of the protocol.
    pub fn error(status: u16, message: &str) -> Self {
        let message = message.into();
        Self::of(Answer::Error { status, message })
    }

    /// Answers with a status and a body that is no protocol's own.
    pub fn body(status: u16, body: Value) -> Self {
        Self::of(Answer::Body { status, body })
    }

    /// Begins to say something, and ends it with an error in the form of the protocol.
    pub fn fail(text: &str, status: u16, message: &str) -> Self {
        let (text, message) = (text.into(), message.into());
        Self::of(Answer::Fail {
            text,
            status,
            message,
        })
    }

    /// Begins to say something, and breaks the connection.
    pub fn cut(text: &str) -> Self {
        Self::of(Answer::Cut(text.into()))
    }

    fn of(answer: Answer) -> Self {
        Self {
            answer,
            usage: Usage {
                input_tokens: 100,
                output_tokens: 10,
                ..Usage::default()
            },
            headers: Vec::new(),
            before: Duration::ZERO,
            within: Duration::ZERO,
        }
    }

    /// Says that these tokens were used.
    #[must_use]
    pub fn using(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Waits before the answer begins.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.before = wait;
        self
    }

    /// Waits in the middle of the answer, after its first event.
    #[must_use]
    pub fn stalling(mut self, wait: Duration) -> Self {
        self.within = wait;
        self
    }
}

/// What is said, request by request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scenario {
    steps: BTreeMap<Api, Vec<Step>>,
}

impl Scenario {
    /// Says the same steps whichever protocol is used; each protocol has its own count.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps: Vec<Step> = steps.into_iter().collect();
        [Api::Messages, Api::Responses, Api::Chat]
            .into_iter()
            .fold(Self::default(), |scenario, api| {
                scenario.with(api, steps.clone())
            })
    }

    /// Says these steps to one protocol.
    #[must_use]
    pub fn with(mut self, api: Api, steps: impl IntoIterator<Item = Step>) -> Self {
        self.steps.insert(api, steps.into_iter().collect());
        self
    }

    /// Returns the answer to a protocol's request with this number, counted from 0; the last one
    /// repeats.
    pub(super) fn step(&self, api: Api, number: usize) -> Option<&Step> {
        let steps = self.steps.get(&api)?;
        steps.get(number).or(steps.last())
    }
}

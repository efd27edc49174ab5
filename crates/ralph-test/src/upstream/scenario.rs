//! What a fake upstream says.

use std::collections::BTreeMap;
use std::time::Duration;

use ralph_core::ports::TokenUsage;
use serde_json::Value;

/// A protocol that the upstream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FakeUpstreamApi {
    /// `POST /v1/messages`, Anthropic's.
    Messages,
    /// `POST /v1/responses`, OpenAI's newer one.
    Responses,
    /// `POST /v1/chat/completions`, OpenAI's older one, which many others speak.
    Chat,
}

/// What is said in answer to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioStep {
    pub(super) reply: ScenarioReply,
    pub(super) usage: TokenUsage,
    pub(super) headers: Vec<(String, String)>,
    pub(super) initial_delay: Duration,
    pub(super) stall: Duration,
}

/// The kinds of answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ScenarioReply {
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

impl ScenarioStep {
    /// Says something, and ends its turn.
    pub fn text(text: &str) -> Self {
        Self::from_reply(ScenarioReply::Text(text.into()))
    }

    /// Asks for a tool.
    pub fn tool(name: &str, input: Value) -> Self {
        let name = name.into();
        Self::from_reply(ScenarioReply::Tool { name, input })
    }

    /// Refuses with a status, in the form of the protocol.
    pub fn error(status: u16, message: &str) -> Self {
        let message = message.into();
        Self::from_reply(ScenarioReply::Error { status, message })
    }

    /// Answers with a status and a body that is no protocol's own.
    pub fn body(status: u16, body: Value) -> Self {
        Self::from_reply(ScenarioReply::Body { status, body })
    }

    /// Begins to say something, and ends it with an error in the form of the protocol.
    pub fn fail(text: &str, status: u16, message: &str) -> Self {
        let (text, message) = (text.into(), message.into());
        Self::from_reply(ScenarioReply::Fail {
            text,
            status,
            message,
        })
    }

    /// Begins to say something, and breaks the connection.
    pub fn cut(text: &str) -> Self {
        Self::from_reply(ScenarioReply::Cut(text.into()))
    }

    fn from_reply(answer: ScenarioReply) -> Self {
        Self {
            reply: answer,
            usage: TokenUsage {
                input_tokens: 100,
                output_tokens: 10,
                ..TokenUsage::default()
            },
            headers: Vec::new(),
            initial_delay: Duration::ZERO,
            stall: Duration::ZERO,
        }
    }

    /// Says that these tokens were used.
    #[must_use]
    pub fn with_usage(mut self, usage: TokenUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Waits before the answer begins.
    #[must_use]
    pub fn with_delay(mut self, wait: Duration) -> Self {
        self.initial_delay = wait;
        self
    }

    /// Waits in the middle of the answer, after its first event.
    #[must_use]
    pub fn with_stall(mut self, wait: Duration) -> Self {
        self.stall = wait;
        self
    }
}

/// What is said, request by request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UpstreamScenario {
    steps: BTreeMap<FakeUpstreamApi, Vec<ScenarioStep>>,
}

impl UpstreamScenario {
    /// Says the same steps whichever protocol is used; each protocol has its own count.
    pub fn new(steps: impl IntoIterator<Item = ScenarioStep>) -> Self {
        let steps: Vec<ScenarioStep> = steps.into_iter().collect();
        [
            FakeUpstreamApi::Messages,
            FakeUpstreamApi::Responses,
            FakeUpstreamApi::Chat,
        ]
        .into_iter()
        .fold(Self::default(), |scenario, api| {
            scenario.with_steps(api, steps.clone())
        })
    }

    /// Says these steps to one protocol.
    #[must_use]
    pub fn with_steps(
        mut self,
        api: FakeUpstreamApi,
        steps: impl IntoIterator<Item = ScenarioStep>,
    ) -> Self {
        self.steps.insert(api, steps.into_iter().collect());
        self
    }

    /// Returns the answer to a protocol's request with this number, counted from 0; the last one
    /// repeats.
    pub(super) fn step(&self, api: FakeUpstreamApi, number: usize) -> Option<&ScenarioStep> {
        let steps = self.steps.get(&api)?;
        steps.get(number).or(steps.last())
    }
}

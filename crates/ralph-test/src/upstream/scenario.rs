//! The scripted responses of a fake upstream.

use std::collections::BTreeMap;
use std::time::Duration;

use ralph_core::ports::TokenUsage;
use serde_json::Value;

/// A protocol of the fake upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FakeUpstreamApi {
    /// Anthropic messages: `POST /v1/messages`.
    Messages,
    /// OpenAI responses: `POST /v1/responses`.
    Responses,
    /// OpenAI chat completions, also used by compatible servers: `POST /v1/chat/completions`.
    Chat,
}

/// The response to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioStep {
    pub(super) reply: ScenarioReply,
    pub(super) usage: TokenUsage,
    pub(super) headers: Vec<(String, String)>,
    pub(super) initial_delay: Duration,
    pub(super) stall: Duration,
}

/// The kinds of responses.
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
    /// Responds with text and ends the turn.
    pub fn text(text: &str) -> Self {
        Self::from_reply(ScenarioReply::Text(text.into()))
    }

    /// Calls a tool.
    pub fn tool(name: &str, input: Value) -> Self {
        let name = name.into();
        Self::from_reply(ScenarioReply::Tool { name, input })
    }

    /// Responds with an error status in the protocol's format.
    pub fn error(status: u16, message: &str) -> Self {
        let message = message.into();
        Self::from_reply(ScenarioReply::Error { status, message })
    }

    /// Responds with a status and an arbitrary body.
    pub fn body(status: u16, body: Value) -> Self {
        Self::from_reply(ScenarioReply::Body { status, body })
    }

    /// Starts with text and ends with an error in the protocol's format.
    pub fn fail(text: &str, status: u16, message: &str) -> Self {
        let (text, message) = (text.into(), message.into());
        Self::from_reply(ScenarioReply::Fail {
            text,
            status,
            message,
        })
    }

    /// Starts with text and breaks the connection.
    pub fn cut(text: &str) -> Self {
        Self::from_reply(ScenarioReply::Cut(text.into()))
    }

    fn from_reply(reply: ScenarioReply) -> Self {
        Self {
            reply,
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

    /// Reports this token usage.
    #[must_use]
    pub fn with_usage(mut self, usage: TokenUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Waits before the response starts.
    #[must_use]
    pub fn with_delay(mut self, wait: Duration) -> Self {
        self.initial_delay = wait;
        self
    }

    /// Waits after the first event of the response.
    #[must_use]
    pub fn with_stall(mut self, wait: Duration) -> Self {
        self.stall = wait;
        self
    }
}

/// The responses of a fake upstream, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UpstreamScenario {
    steps: BTreeMap<FakeUpstreamApi, Vec<ScenarioStep>>,
}

impl UpstreamScenario {
    /// Uses the same steps for every protocol; each protocol counts its own requests.
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

    /// Sets the steps of one protocol.
    #[must_use]
    pub fn with_steps(
        mut self,
        api: FakeUpstreamApi,
        steps: impl IntoIterator<Item = ScenarioStep>,
    ) -> Self {
        self.steps.insert(api, steps.into_iter().collect());
        self
    }

    /// Returns the step for a request, by its number within the protocol from 0; the last step
    /// repeats.
    pub(super) fn step(&self, api: FakeUpstreamApi, number: usize) -> Option<&ScenarioStep> {
        let steps = self.steps.get(&api)?;
        steps.get(number).or(steps.last())
    }
}

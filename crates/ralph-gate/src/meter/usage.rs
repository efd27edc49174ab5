//! What providers write about tokens: three shapes, whole and in events.

use std::borrow::Cow;
use std::fmt;

use ralph_core::ports::Usage;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// How a provider speaks about models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Anthropic's messages.
    AnthropicMessages,
    /// OpenAI's chat completions.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
}

/// One event, or a whole answer, of any of the shapes.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) usage: Option<Tokens>,
    /// Of Anthropic's first event.
    #[serde(borrow, default)]
    pub(super) message: Option<Whole<'a>>,
    /// Of OpenAI's first and last event.
    #[serde(borrow, default)]
    pub(super) response: Option<Whole<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Whole<'a> {
    #[serde(borrow, default)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) usage: Option<Tokens>,
}

/// What an event adds to the answer.
#[derive(Debug)]
enum Delta<'a> {
    /// Text of so many bytes.
    Text(usize),
    Parts(Parts<'a>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Delta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An untagged enum would make a copy of everything first, for each event.
        deserializer.deserialize_any(DeltaVisitor)
    }
}

struct DeltaVisitor;

impl<'de> Visitor<'de> for DeltaVisitor {
    type Value = Delta<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text or an object")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Delta<'de>, E> {
        Ok(Delta::Text(text.len()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Delta<'de>, A::Error> {
        Parts::deserialize(MapAccessDeserializer::new(map)).map(Delta::Parts)
    }
}

#[derive(Debug, Default, Deserialize)]
struct Parts<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Option<Parts<'a>>,
}

#[derive(Debug, Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    arguments: Option<Cow<'a, str>>,
}

/// Counts of tokens under all their names.
#[expect(
    clippy::struct_field_names,
    reason = "the names are those of the providers"
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    input_tokens_details: Option<Details>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Event<'_> {
    /// Returns how many characters of the answer it carries.
    pub(super) fn chars(&self) -> u64 {
        let own = match &self.delta {
            Some(Delta::Text(bytes)) => *bytes as u64,
            Some(Delta::Parts(parts)) => parts.chars(),
            None => 0,
        };
        let choices = self
            .choices
            .iter()
            .filter_map(|choice| choice.delta.as_ref());
        own + choices.map(Parts::chars).sum::<u64>()
    }
}

impl Parts<'_> {
    fn chars(&self) -> u64 {
        let texts = [
            &self.text,
            &self.partial_json,
            &self.thinking,
            &self.content,
            &self.reasoning_content,
        ];
        let calls = self.tool_calls.iter().flatten();
        let arguments = calls
            .filter_map(|call| call.function.as_ref()?.arguments.as_ref())
            .map(|text| text.len() as u64);
        texts
            .into_iter()
            .flatten()
            .map(|text| text.len() as u64)
            .chain(arguments)
            .sum()
    }
}

impl Tokens {
    /// Takes over what a later event says.
    pub(super) fn update(&mut self, later: Self) {
        let newer = |old: &mut Option<u64>, new: Option<u64>| *old = new.or(*old);
        newer(&mut self.input_tokens, later.input_tokens);
        newer(&mut self.output_tokens, later.output_tokens);
        newer(
            &mut self.cache_creation_input_tokens,
            later.cache_creation_input_tokens,
        );
        newer(
            &mut self.cache_read_input_tokens,
            later.cache_read_input_tokens,
        );
        newer(&mut self.prompt_tokens, later.prompt_tokens);
        newer(&mut self.completion_tokens, later.completion_tokens);
        self.prompt_tokens_details = later.prompt_tokens_details.or(self.prompt_tokens_details);
        self.input_tokens_details = later.input_tokens_details.or(self.input_tokens_details);
    }

    /// Returns the tokens as ralph counts them: cached ones are part of the input.
    pub(super) fn usage(&self, wire: Wire) -> Usage {
        let or_zero = |count: Option<u64>| count.unwrap_or(0);
        let cached = |details: Option<Details>| or_zero(details.and_then(|d| d.cached_tokens));
        match wire {
            Wire::AnthropicMessages => {
                let read = or_zero(self.cache_read_input_tokens);
                let written = or_zero(self.cache_creation_input_tokens);
                Usage {
                    input_tokens: or_zero(self.input_tokens)
                        .saturating_add(read)
                        .saturating_add(written),
                    output_tokens: or_zero(self.output_tokens),
                    cache_read_tokens: read,
                    cache_write_tokens: written,
                }
            }
            Wire::OpenAiChat => Usage {
                input_tokens: or_zero(self.prompt_tokens),
                output_tokens: or_zero(self.completion_tokens),
                cache_read_tokens: cached(self.prompt_tokens_details),
                cache_write_tokens: 0,
            },
            Wire::OpenAiResponses => Usage {
                input_tokens: or_zero(self.input_tokens),
                output_tokens: or_zero(self.output_tokens),
                cache_read_tokens: cached(self.input_tokens_details),
                cache_write_tokens: 0,
            },
        }
    }
}

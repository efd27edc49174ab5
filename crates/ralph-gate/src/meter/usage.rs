//! What providers write about tokens: three shapes, whole and in events.

use std::borrow::Cow;
use std::fmt;

use ralph_core::ports::Usage;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
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
    #[serde(default)]
    error: Option<IgnoredAny>,
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
    #[serde(default)]
    stop_reason: Option<IgnoredAny>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(default)]
    content: Content,
    #[serde(borrow, default)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

/// The bytes of a content: a text, a list of parts with texts, an object or nothing.
#[derive(Debug, Default)]
struct Content {
    bytes: u64,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a content")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Content, E> {
        let bytes = text.len() as u64;
        Ok(Content { bytes })
    }

    fn visit_unit<E: de::Error>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
        let mut bytes = 0;
        while let Some(part) = parts.next_element::<TextPart<'de>>()? {
            bytes += part.text.map_or(0, |text| text.len() as u64);
        }
        Ok(Content { bytes })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content, A::Error> {
        IgnoredAny.visit_map(map)?;
        Ok(Content::default())
    }
}

#[derive(Debug, Deserialize)]
struct TextPart<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Option<Parts<'a>>,
    #[serde(default)]
    finish_reason: Option<IgnoredAny>,
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

/// More tokens than any model reads or writes in one call.
const MOST_TOKENS: u64 = 100_000_000;

/// A count of tokens in a provider's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Count {
    #[default]
    Absent,
    Tokens(u64),
    /// Something that is no count: a fraction, a text, a negative or an absurd number.
    Invalid,
}

impl Count {
    fn or(self, earlier: Self) -> Self {
        match self {
            Self::Absent => earlier,
            Self::Tokens(_) | Self::Invalid => self,
        }
    }

    /// Returns the count; an absent one is zero.
    fn or_zero(self) -> Option<u64> {
        match self {
            Self::Absent => Some(0),
            Self::Tokens(count) => Some(count),
            Self::Invalid => None,
        }
    }

    fn required(self) -> Option<u64> {
        match self {
            Self::Tokens(count) => Some(count),
            Self::Absent | Self::Invalid => None,
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a count of tokens")
    }

    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count::Absent)
    }

    fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
        Ok(if count <= MOST_TOKENS {
            Count::Tokens(count)
        } else {
            Count::Invalid
        })
    }

    fn visit_i64<E>(self, _: i64) -> Result<Count, E> {
        Ok(Count::Invalid)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Count, E> {
        Ok(Count::Invalid)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
        Ok(Count::Invalid)
    }

    fn visit_str<E>(self, _: &str) -> Result<Count, E> {
        Ok(Count::Invalid)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Count, A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Count::Invalid)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Count, A::Error> {
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Count::Invalid)
    }
}

/// Counts of tokens under all their names.
#[expect(
    clippy::struct_field_names,
    reason = "the names are those of the providers"
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    input_tokens: Count,
    output_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Option<Details>,
    input_tokens_details: Option<Details>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Count,
}

impl Event<'_> {
    /// Tells whether the provider reports an error instead of an answer.
    pub(super) fn is_error(&self) -> bool {
        self.kind.as_deref() == Some("error") || self.error.is_some()
    }

    /// Tells whether the model has stopped writing, in Anthropic's events.
    pub(super) fn has_stopped(&self) -> bool {
        match &self.delta {
            Some(Delta::Parts(parts)) => parts.stop_reason.is_some(),
            Some(Delta::Text(_)) | None => false,
        }
    }

    /// Tells whether no more of the answer follows, in the events of chat completions.
    pub(super) fn is_last_of_chat(&self) -> bool {
        self.choices
            .iter()
            .all(|choice| choice.finish_reason.is_some())
    }

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
            .chain([self.content.bytes])
            .sum()
    }
}

impl Tokens {
    /// Takes over what a later event says.
    pub(super) fn update(&mut self, later: Self) {
        let newer = |old: &mut Count, new: Count| *old = new.or(*old);
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

    /// Returns the tokens as ralph counts them: cached ones are part of the input. None if a count is
    /// missing or cannot be true.
    pub(super) fn usage(&self, wire: Wire) -> Option<Usage> {
        let output = match wire {
            Wire::OpenAiChat => self.completion_tokens,
            Wire::AnthropicMessages | Wire::OpenAiResponses => self.output_tokens,
        };
        let output_tokens = output.required()?;
        self.input(wire).map(|input| Usage {
            output_tokens,
            ..input
        })
    }

    /// Returns the tokens of the input alone.
    pub(super) fn input(&self, wire: Wire) -> Option<Usage> {
        let cached = |details: Option<Details>| details.unwrap_or_default().cached_tokens.or_zero();
        let usage = match wire {
            Wire::AnthropicMessages => {
                let read = self.cache_read_input_tokens.or_zero()?;
                let written = self.cache_creation_input_tokens.or_zero()?;
                Usage {
                    input_tokens: self
                        .input_tokens
                        .required()?
                        .saturating_add(read)
                        .saturating_add(written),
                    cache_read_tokens: read,
                    cache_write_tokens: written,
                    output_tokens: 0,
                }
            }
            Wire::OpenAiChat => Usage {
                input_tokens: self.prompt_tokens.required()?,
                cache_read_tokens: cached(self.prompt_tokens_details)?,
                ..Usage::default()
            },
            Wire::OpenAiResponses => Usage {
                input_tokens: self.input_tokens.required()?,
                cache_read_tokens: cached(self.input_tokens_details)?,
                ..Usage::default()
            },
        };
        // Every request has input, and cached input is a part of it.
        (usage.input_tokens > 0 && usage.cache_read_tokens <= usage.input_tokens).then_some(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn usage(wire: Wire, usage: &Value) -> Option<Usage> {
        let text = json!({ "usage": usage }).to_string();
        let event: Event<'_> = serde_json::from_str(&text).unwrap();
        event.usage.unwrap_or_default().usage(wire)
    }

    #[test]
    fn only_whole_and_plausible_counts_are_believed() {
        let chat = |input: Value, output: Value| {
            usage(
                Wire::OpenAiChat,
                &json!({"prompt_tokens": input, "completion_tokens": output}),
            )
        };
        let expected = Usage {
            input_tokens: 7,
            output_tokens: 3,
            ..Usage::default()
        };
        assert_eq!(chat(json!(7), json!(3)), Some(expected));
        for bad in [
            json!(7.0),
            json!("7"),
            json!(-7),
            json!(null),
            json!(1_000_000_000),
            json!(true),
            json!([7]),
            json!({"count": 7}),
        ] {
            assert_eq!(chat(bad.clone(), json!(3)), None, "{bad}");
            assert_eq!(chat(json!(7), bad.clone()), None, "{bad}");
        }
        assert_eq!(chat(json!(0), json!(0)), None);
        for details in [json!(-1), json!(1.5), json!(8)] {
            let told = json!({"input_tokens": 7, "output_tokens": 3, "input_tokens_details": {"cached_tokens": details}});
            assert_eq!(usage(Wire::OpenAiResponses, &told), None, "{told}");
        }
        let told = json!({"input_tokens": 0, "cache_read_input_tokens": 7, "output_tokens": 3});
        let found = usage(Wire::AnthropicMessages, &told).unwrap();
        assert_eq!((found.input_tokens, found.cache_read_tokens), (7, 7));
        for key in ["cache_read_input_tokens", "cache_creation_input_tokens"] {
            let mut told = json!({"input_tokens": 7, "output_tokens": 3});
            told[key] = json!("5");
            assert_eq!(usage(Wire::AnthropicMessages, &told), None, "{told}");
        }
    }
}

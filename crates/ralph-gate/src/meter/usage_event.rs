//! The answers of providers, as far as their cost depends on them: three shapes, whole and in events.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::reported_tokens::ReportedTokens;

/// How a provider speaks about models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelWireFormat {
    /// Anthropic's messages.
    AnthropicMessages,
    /// OpenAI's chat completions.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
}

/// One event, or a whole answer, of any of the shapes.
#[derive(Debug, Deserialize)]
pub(super) struct UsageEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) usage: Option<ReportedTokens>,
    /// Of Anthropic's first event.
    #[serde(borrow, default)]
    pub(super) message: Option<UsageEnvelope<'a>>,
    /// Of OpenAI's first and last event.
    #[serde(borrow, default)]
    pub(super) response: Option<UsageEnvelope<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    choices: Vec<ChatChoiceDelta<'a>>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct UsageEnvelope<'a> {
    #[serde(borrow, default)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) usage: Option<ReportedTokens>,
}

/// What an event adds to the answer.
#[derive(Debug)]
enum Delta<'a> {
    /// Text of so many bytes.
    Text(usize),
    Parts(DeltaParts<'a>),
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
        DeltaParts::deserialize(MapAccessDeserializer::new(map)).map(Delta::Parts)
    }
}

#[derive(Debug, Default, Deserialize)]
struct DeltaParts<'a> {
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
struct ChatChoiceDelta<'a> {
    #[serde(borrow, default)]
    delta: Option<DeltaParts<'a>>,
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

impl UsageEvent<'_> {
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
    pub(super) fn is_last_chat_event(&self) -> bool {
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
        own + choices.map(DeltaParts::chars).sum::<u64>()
    }
}

impl DeltaParts<'_> {
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

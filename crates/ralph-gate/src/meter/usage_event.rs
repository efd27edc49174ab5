//! The parts of provider responses that determine cost: three formats, complete and streamed.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::reported_tokens::ReportedTokens;

/// The API format of a model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelWireFormat {
    /// Anthropic messages.
    AnthropicMessages,
    /// OpenAI chat completions.
    OpenAiChat,
    /// OpenAI responses.
    OpenAiResponses,
}

/// One event, or a complete response, in any of the formats.
#[derive(Debug, Deserialize)]
pub(super) struct UsageEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) usage: Option<ReportedTokens>,
    /// In Anthropic's first event.
    #[serde(borrow, default)]
    pub(super) message: Option<UsageEnvelope<'a>>,
    /// In OpenAI's first and last events.
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

/// The content that an event adds to the response.
#[derive(Debug)]
enum Delta<'a> {
    /// Text of this many bytes.
    Text(usize),
    Parts(DeltaParts<'a>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Delta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An untagged enum would buffer every event before matching.
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

/// The size of content in bytes: a string, a list of parts with text, an object or nothing.
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
    /// Returns whether the provider reports an error instead of a response.
    pub(super) fn is_error(&self) -> bool {
        self.kind.as_deref() == Some("error") || self.error.is_some()
    }

    /// Returns whether the model has stopped writing, in Anthropic's events.
    pub(super) fn has_stopped(&self) -> bool {
        match &self.delta {
            Some(Delta::Parts(parts)) => parts.stop_reason.is_some(),
            Some(Delta::Text(_)) | None => false,
        }
    }

    /// Returns whether all choices of a chat event are finished. This includes the usage event, which
    /// has no choices.
    pub(super) fn is_last_chat_event(&self) -> bool {
        self.choices
            .iter()
            .all(|choice| choice.finish_reason.is_some())
    }

    /// Returns the size of the response text in the event, in bytes.
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

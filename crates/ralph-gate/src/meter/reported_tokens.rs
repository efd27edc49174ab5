//! Token counts as reported by providers, and the usage they represent.

use std::fmt;

use ralph_core::ports::TokenUsage;
use ralph_core::price::OutputCounts;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::usage_event::ModelWireFormat;

/// A limit that no model reaches in one call.
const MAX_TOKENS: u64 = 100_000_000;

/// A token count as reported by a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ReportedCount {
    #[default]
    Absent,
    Tokens(u64),
    /// Not a count: a fraction, a string, or a negative or implausibly large number.
    Invalid,
}

impl ReportedCount {
    fn or(self, earlier: Self) -> Self {
        match self {
            Self::Absent => earlier,
            Self::Tokens(_) | Self::Invalid => self,
        }
    }

    /// Returns the count; a missing one is zero.
    fn or_zero(self) -> Option<u64> {
        match self {
            Self::Absent => Some(0),
            Self::Tokens(count) => Some(count),
            Self::Invalid => None,
        }
    }

    /// Returns the count if present; `None` if it is invalid.
    #[expect(
        clippy::option_option,
        reason = "an absent count and an invalid one are different"
    )]
    fn optional(self) -> Option<Option<u64>> {
        match self {
            Self::Absent => Some(None),
            Self::Tokens(count) => Some(Some(count)),
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

impl<'de> Deserialize<'de> for ReportedCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReportedCountVisitor)
    }
}

struct ReportedCountVisitor;

impl<'de> Visitor<'de> for ReportedCountVisitor {
    type Value = ReportedCount;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a count of tokens")
    }

    fn visit_unit<E>(self) -> Result<ReportedCount, E> {
        Ok(ReportedCount::Absent)
    }

    fn visit_u64<E>(self, count: u64) -> Result<ReportedCount, E> {
        Ok(if count <= MAX_TOKENS {
            ReportedCount::Tokens(count)
        } else {
            ReportedCount::Invalid
        })
    }

    fn visit_i64<E>(self, _: i64) -> Result<ReportedCount, E> {
        Ok(ReportedCount::Invalid)
    }

    fn visit_f64<E>(self, _: f64) -> Result<ReportedCount, E> {
        Ok(ReportedCount::Invalid)
    }

    fn visit_bool<E>(self, _: bool) -> Result<ReportedCount, E> {
        Ok(ReportedCount::Invalid)
    }

    fn visit_str<E>(self, _: &str) -> Result<ReportedCount, E> {
        Ok(ReportedCount::Invalid)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<ReportedCount, A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ReportedCount::Invalid)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<ReportedCount, A::Error> {
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ReportedCount::Invalid)
    }
}

/// Token counts under all field names in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ReportedTokens {
    input_tokens: ReportedCount,
    output_tokens: ReportedCount,
    cache_creation_input_tokens: ReportedCount,
    cache_read_input_tokens: ReportedCount,
    /// Anthropic's cache writes by lifetime.
    cache_creation: Option<CacheCreation>,
    prompt_tokens: ReportedCount,
    completion_tokens: ReportedCount,
    total_tokens: ReportedCount,
    prompt_cache_hit_tokens: ReportedCount,
    prompt_tokens_details: Option<InputDetails>,
    input_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: ReportedCount,
    cache_creation_tokens: ReportedCount,
    cache_write_tokens: ReportedCount,
    cache_creation_token_details: Option<CacheCreation>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct CacheCreation {
    ephemeral_1h_input_tokens: ReportedCount,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: ReportedCount,
}

impl ReportedTokens {
    /// Merges the counts of a later event.
    pub(super) fn update(&mut self, later: Self) {
        let newer = |old: &mut ReportedCount, new: ReportedCount| *old = new.or(*old);
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
        newer(&mut self.total_tokens, later.total_tokens);
        newer(
            &mut self.prompt_cache_hit_tokens,
            later.prompt_cache_hit_tokens,
        );
        self.cache_creation = later.cache_creation.or(self.cache_creation);
        self.prompt_tokens_details = later.prompt_tokens_details.or(self.prompt_tokens_details);
        self.input_tokens_details = later.input_tokens_details.or(self.input_tokens_details);
        let details = later.completion_tokens_details;
        self.completion_tokens_details = details.or(self.completion_tokens_details);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    /// Returns the tokens as ralph counts them: cached tokens are part of the input, reasoning
    /// tokens part of the output. Returns `None` if a count is missing or implausible.
    pub(super) fn usage(&self, wire: ModelWireFormat) -> Option<TokenUsage> {
        let (output, details) = match wire {
            ModelWireFormat::OpenAiChat => (self.completion_tokens, self.completion_tokens_details),
            ModelWireFormat::AnthropicMessages => (self.output_tokens, None),
            ModelWireFormat::OpenAiResponses => (self.output_tokens, self.output_tokens_details),
        };
        let input = self.input(wire)?;
        let reasoning = details.unwrap_or_default().reasoning_tokens.or_zero()?;
        let counts = OutputCounts {
            input: input.input_tokens,
            output: output.required()?,
            reasoning,
            total: self.total_tokens.optional()?,
        };
        Some(TokenUsage {
            output_tokens: counts.billed(),
            reasoning_tokens: reasoning,
            ..input
        })
    }

    /// Returns the input tokens only.
    pub(super) fn input(&self, wire: ModelWireFormat) -> Option<TokenUsage> {
        let usage = match wire {
            ModelWireFormat::AnthropicMessages => self.anthropic_input()?,
            ModelWireFormat::OpenAiChat => TokenUsage {
                input_tokens: self.prompt_tokens.required()?,
                ..self.cached_input(self.prompt_tokens_details)?
            },
            ModelWireFormat::OpenAiResponses => TokenUsage {
                input_tokens: self.input_tokens.required()?,
                ..self.cached_input(self.input_tokens_details)?
            },
        };
        // Every request has input, and cached tokens are part of it.
        let cached = usage
            .cache_read_tokens
            .checked_add(usage.cache_write_tokens)?;
        let is_possible = usage.input_tokens > 0
            && cached <= usage.input_tokens
            && usage.cache_write_1h_tokens <= usage.cache_write_tokens;
        is_possible.then_some(usage)
    }

    /// Returns the input of an Anthropic message, which counts cached tokens separately.
    fn anthropic_input(&self) -> Option<TokenUsage> {
        let read = self.cache_read_input_tokens.or_zero()?;
        let written = self.cache_creation_input_tokens.or_zero()?;
        Some(TokenUsage {
            input_tokens: self
                .input_tokens
                .required()?
                .saturating_add(read)
                .saturating_add(written),
            cache_read_tokens: read,
            cache_write_tokens: written,
            cache_write_1h_tokens: one_hour_cache_tokens(self.cache_creation)?,
            ..TokenUsage::default()
        })
    }

    /// Returns the cached part of the input in OpenAI formats, under any name used by compatible
    /// servers.
    fn cached_input(&self, details: Option<InputDetails>) -> Option<TokenUsage> {
        let details = details.unwrap_or_default();
        let read = details
            .cached_tokens
            .or(self.prompt_cache_hit_tokens)
            .or(self.cache_read_input_tokens);
        let written = self
            .cache_creation_input_tokens
            .or(details.cache_creation_tokens)
            .or(details.cache_write_tokens);
        Some(TokenUsage {
            cache_read_tokens: read.or_zero()?,
            cache_write_tokens: written.or_zero()?,
            cache_write_1h_tokens: one_hour_cache_tokens(details.cache_creation_token_details)?,
            ..TokenUsage::default()
        })
    }
}

fn one_hour_cache_tokens(creation: Option<CacheCreation>) -> Option<u64> {
    let creation = creation.unwrap_or_default();
    creation.ephemeral_1h_input_tokens.or_zero()
}

#[cfg(test)]
mod tests {
    use super::super::usage_event::UsageEvent;
    use super::*;
    use serde_json::{Value, json};

    fn usage(wire: ModelWireFormat, usage: &Value) -> Option<TokenUsage> {
        let text = json!({ "usage": usage }).to_string();
        let event: UsageEvent<'_> = serde_json::from_str(&text).unwrap();
        event.usage.unwrap_or_default().usage(wire)
    }

    #[test]
    fn only_integral_plausible_counts_are_accepted() {
        let chat = |input: Value, output: Value| {
            usage(
                ModelWireFormat::OpenAiChat,
                &json!({"prompt_tokens": input, "completion_tokens": output}),
            )
        };
        let expected = TokenUsage {
            input_tokens: 7,
            output_tokens: 3,
            ..TokenUsage::default()
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
            let reported = json!({"input_tokens": 7, "output_tokens": 3, "input_tokens_details": {"cached_tokens": details}});
            assert_eq!(
                usage(ModelWireFormat::OpenAiResponses, &reported),
                None,
                "{reported}"
            );
        }
        let reported = json!({"input_tokens": 0, "cache_read_input_tokens": 7, "output_tokens": 3});
        let found = usage(ModelWireFormat::AnthropicMessages, &reported).unwrap();
        assert_eq!((found.input_tokens, found.cache_read_tokens), (7, 7));
        for key in ["cache_read_input_tokens", "cache_creation_input_tokens"] {
            let mut reported = json!({"input_tokens": 7, "output_tokens": 3});
            reported[key] = json!("5");
            assert_eq!(
                usage(ModelWireFormat::AnthropicMessages, &reported),
                None,
                "{reported}"
            );
        }
    }

    #[test]
    fn reasoning_and_cache_writes_are_counted() {
        for (wire, reported, [input, output, read, write, hour, reasoning]) in [
            // OpenAI includes reasoning in the output.
            (
                ModelWireFormat::OpenAiChat,
                json!({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
                       "completion_tokens_details": {"reasoning_tokens": 40}}),
                [100, 50, 0, 0, 0, 40],
            ),
            // xAI counts reasoning separately.
            (
                ModelWireFormat::OpenAiChat,
                json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 150,
                       "prompt_tokens_details": {"cached_tokens": 60, "text_tokens": 100},
                       "completion_tokens_details": {"reasoning_tokens": 40}}),
                [100, 50, 60, 0, 0, 40],
            ),
            (
                ModelWireFormat::OpenAiResponses,
                json!({"input_tokens": 100, "output_tokens": 10, "total_tokens": 150,
                       "output_tokens_details": {"reasoning_tokens": 40}}),
                [100, 50, 0, 0, 0, 40],
            ),
            (
                ModelWireFormat::OpenAiChat,
                json!({"prompt_tokens": 100, "completion_tokens": 10, "prompt_cache_hit_tokens": 20,
                       "prompt_tokens_details": {"cache_write_tokens": 30,
                           "cache_creation_token_details": {"ephemeral_1h_input_tokens": 5}}}),
                [100, 10, 20, 30, 5, 0],
            ),
            (
                ModelWireFormat::AnthropicMessages,
                json!({"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 30,
                       "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10}}),
                [130, 10, 0, 30, 10, 0],
            ),
        ] {
            let expected = TokenUsage {
                input_tokens: input,
                output_tokens: output,
                cache_read_tokens: read,
                cache_write_tokens: write,
                cache_write_1h_tokens: hour,
                reasoning_tokens: reasoning,
            };
            assert_eq!(usage(wire, &reported), Some(expected), "{reported}");
        }
    }

    #[test]
    fn invalid_or_excessive_partial_counts_are_rejected() {
        for more in [
            json!({"total_tokens": "150"}),
            json!({"completion_tokens_details": {"reasoning_tokens": -1}}),
            json!({"prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 41}}),
            json!({"prompt_tokens_details": {"cache_write_tokens": 4,
                   "cache_creation_token_details": {"ephemeral_1h_input_tokens": 5}}}),
        ] {
            let mut reported = json!({"prompt_tokens": 100, "completion_tokens": 50});
            let fields = reported.as_object_mut().unwrap();
            fields.extend(more.as_object().unwrap().clone());
            assert_eq!(
                usage(ModelWireFormat::OpenAiChat, &reported),
                None,
                "{reported}"
            );
        }
    }
}

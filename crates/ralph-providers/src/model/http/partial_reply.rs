//! A reply that is being received, and its token usage.

use ralph_core::action::limits::MAX_REPLY_BYTES;
use ralph_core::money::Usd;
use ralph_core::ports::{FinishReason, TokenUsage};
use ralph_core::price::OutputCounts;
use serde_json::Value;

/// Bytes per token for estimates. Low, so that estimates err on the high side.
const BYTES_PER_TOKEN: usize = 3;

/// More tokens than any call can use: a larger count is invalid.
const MAX_TOKENS: u64 = 100_000_000;

/// A reply that is being received.
#[derive(Debug, Default)]
pub(super) struct PartialReply {
    pub(super) text: String,
    /// The model's refusal text.
    pub(super) refusal: String,
    /// Why the model stopped, once it has.
    pub(super) finish: Option<FinishReason>,
    /// Whether the end of the reply was received.
    pub(super) is_complete: bool,
    /// Token counts from the provider.
    pub(super) reported: ReportedUsage,
    /// The responding model, as named by the provider.
    pub(super) model: Option<String>,
}

/// Plausible token counts from a provider.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedUsage {
    /// Prompt tokens, including cached ones.
    pub(super) input: Option<u64>,
    /// Reply tokens, including reasoning.
    pub(super) output: Option<u64>,
    /// Part of `input` that was read from a cache.
    pub(super) cache_read: u64,
    /// Part of `input` that was written to a cache.
    pub(super) cache_write: u64,
    /// Part of `cache_write` that is stored for an hour.
    pub(super) cache_write_1h: u64,
    /// Part of `output` that is reasoning.
    pub(super) reasoning: u64,
    /// The cost reported by the provider.
    pub(super) billed: Option<Usd>,
}

impl ReportedUsage {
    /// Sets the output counts; `output` may or may not include the reasoning.
    pub(super) fn count_output(&mut self, output: u64, reasoning: &Value, total: &Value) {
        self.reasoning = parse_tokens(reasoning).unwrap_or(0);
        let counts = OutputCounts {
            input: self.input.unwrap_or(0),
            output,
            reasoning: self.reasoning,
            total: parse_tokens(total),
        };
        self.output = Some(counts.billed());
    }
}

/// The estimated usage of a call before its reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallEstimate {
    pub(super) prompt_bytes: usize,
    /// The maximum that can be billed, if the output is limited.
    pub(super) bound: Option<TokenUsage>,
}

/// Parses a plausible token count.
pub(super) fn parse_tokens(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| *count <= MAX_TOKENS)
}

/// Parses a billed amount in dollars.
pub(super) fn parse_dollars(value: f64) -> Option<Usd> {
    Usd::from_dollars(value).filter(|amount| *amount > Usd::ZERO)
}

impl PartialReply {
    /// Appends text until the size limit is exceeded.
    pub(super) fn push_text(&mut self, text: &str) {
        // The chunk that exceeds the limit is stored, which marks the reply as too long.
        if self.text.len() <= MAX_REPLY_BYTES {
            self.text.push_str(text);
        }
    }

    /// Appends to the refusal text.
    pub(super) fn push_refusal(&mut self, text: &str) {
        if self.refusal.len() <= MAX_REPLY_BYTES {
            self.refusal.push_str(text);
        }
    }

    /// Returns why the model stopped.
    pub(super) fn finish(&self) -> FinishReason {
        if self.refusal.is_empty() {
            self.finish.unwrap_or(FinishReason::Complete)
        } else {
            FinishReason::Refused
        }
    }

    /// Returns whether the model has stopped and the provider has sent token counts.
    pub(super) fn has_final_usage(&self) -> bool {
        self.finish.is_some() && self.reported.output.is_some()
    }

    /// Returns the reply, or the refusal text if there is none.
    pub(super) fn into_text(self) -> String {
        if self.text.trim().is_empty() && !self.refusal.is_empty() {
            self.refusal
        } else {
            self.text
        }
    }

    /// Returns whether the text exceeds the size limit.
    pub(super) fn is_too_long(&self) -> bool {
        self.text.len() > MAX_REPLY_BYTES
    }

    /// Returns the usage of the call. Missing or implausible counts are replaced by the call's
    /// bound, or by an estimate if there is no bound.
    pub(super) fn usage(&self, call: &CallEstimate) -> TokenUsage {
        let estimate = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u64;
        let counted = &self.reported;
        let (most_input, most_output) = match call.bound {
            Some(bound) => (bound.input_tokens, bound.output_tokens),
            None => (estimate(call.prompt_bytes), estimate(self.text.len())),
        };
        let input_tokens = counted
            .input
            .filter(|count| *count > 0)
            .unwrap_or(most_input);
        let output_tokens = counted
            .output
            .filter(|count| *count > 0 || self.text.is_empty())
            .unwrap_or(most_output);
        let cache_read_tokens = counted.cache_read.min(input_tokens);
        let cache_write_tokens = counted.cache_write.min(input_tokens - cache_read_tokens);
        TokenUsage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_write_tokens,
            cache_write_1h_tokens: counted.cache_write_1h.min(cache_write_tokens),
            reasoning_tokens: counted.reasoning.min(output_tokens),
        }
    }

    /// Returns the usage of an incomplete reply: the maximum it may have used, or at least the
    /// received part.
    pub(super) fn usage_so_far(&self, call: &CallEstimate) -> TokenUsage {
        let mut usage = self.usage(call);
        let received = self.text.len().div_ceil(BYTES_PER_TOKEN) as u64;
        let most = call.bound.map_or(received, |bound| bound.output_tokens);
        usage.output_tokens = usage.output_tokens.max(most);
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn implausible_token_counts_are_ignored() {
        for (value, expected) in [
            (json!(7), Some(7)),
            (json!(0), Some(0)),
            (json!(-1), None),
            (json!(1.5), None),
            (json!(1e18), None),
            (json!(1_000_000_000_000_u64), None),
            (json!("7"), None),
            (json!(null), None),
        ] {
            assert_eq!(parse_tokens(&value), expected, "{value}");
        }
    }

    #[test]
    fn unreported_usage_is_estimated_and_never_zero() {
        let reply = |text: &str, input, output| PartialReply {
            text: text.into(),
            reported: ReportedUsage {
                input,
                output,
                cache_read: 5,
                ..ReportedUsage::default()
            },
            ..PartialReply::default()
        };
        let usage = |input_tokens, output_tokens, cache_read_tokens| TokenUsage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            ..TokenUsage::default()
        };
        for (reply, expected) in [
            (reply("abcdef", Some(10), Some(2)), usage(10, 2, 5)),
            (reply("abcdef", None, None), usage(100, 2, 5)),
            (reply("abcdef", Some(0), Some(0)), usage(100, 2, 5)),
            (reply("", Some(3), Some(0)), usage(3, 0, 3)),
        ] {
            let call = CallEstimate {
                prompt_bytes: 300,
                bound: None,
            };
            assert_eq!(reply.usage(&call), expected);
        }
    }

    #[test]
    fn unreported_usage_is_charged_at_the_bound_of_the_call() {
        let call = CallEstimate {
            prompt_bytes: 300,
            bound: Some(TokenUsage {
                input_tokens: 1324,
                output_tokens: 5000,
                ..TokenUsage::default()
            }),
        };
        let reply = |input, output| PartialReply {
            text: "abcdef".into(),
            reported: ReportedUsage {
                input,
                output,
                ..ReportedUsage::default()
            },
            ..PartialReply::default()
        };
        let counts = |usage: TokenUsage| (usage.input_tokens, usage.output_tokens);
        for (reply, whole, cut) in [
            (reply(None, None), (1324, 5000), (1324, 5000)),
            (reply(Some(10), None), (10, 5000), (10, 5000)),
            (reply(Some(10), Some(2)), (10, 2), (10, 5000)),
        ] {
            assert_eq!(counts(reply.usage(&call)), whole);
            assert_eq!(counts(reply.usage_so_far(&call)), cut);
        }
    }
}

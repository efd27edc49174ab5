//! What there is of an answer, and what it used.

use ralph_core::action::limits::MAX_REPLY_BYTES;
use ralph_core::money::Usd;
use ralph_core::ports::{FinishReason, TokenUsage};
use ralph_core::price::OutputCounts;
use serde_json::Value;

/// How many bytes make a token where nobody has counted. Few, so that an estimate is rather too high.
const BYTES_PER_TOKEN: usize = 3;

/// More tokens than any model reads or writes in one call: such a count is nonsense.
const MAX_TOKENS: u64 = 100_000_000;

/// What there is of an answer.
#[derive(Debug, Default)]
pub(super) struct PartialReply {
    /// The text so far.
    pub(super) text: String,
    /// The model's words for not answering.
    pub(super) refusal: String,
    /// Why the model stopped writing, once it has.
    pub(super) finish: Option<FinishReason>,
    /// Whether the end of the answer was seen.
    pub(super) is_complete: bool,
    /// What the provider has counted.
    pub(super) reported: ReportedUsage,
    /// The model that answers, in the provider's words.
    pub(super) model: Option<String>,
}

/// What a provider has counted, as far as it makes sense.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedUsage {
    /// Tokens of the prompt, including those of a cache.
    pub(super) input: Option<u64>,
    /// Tokens of the answer, including thoughts.
    pub(super) output: Option<u64>,
    /// Part of the input that was read from a cache.
    pub(super) cache_read: u64,
    /// Part of the input that was written to a cache.
    pub(super) cache_write: u64,
    /// Part of `cache_write` that is stored for an hour.
    pub(super) cache_write_1h: u64,
    /// Part of the output that is reasoning.
    pub(super) reasoning: u64,
    /// What the call cost, in the provider's words.
    pub(super) billed: Option<Usd>,
}

impl ReportedUsage {
    /// Takes over the counts of the output, which may or may not include its reasoning.
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

/// What is known of a call before it is answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallEstimate {
    pub(super) prompt_bytes: usize,
    /// The most that it can be billed for, if its output is limited.
    pub(super) bound: Option<TokenUsage>,
}

/// Returns a number of tokens, if it is one.
pub(super) fn parse_tokens(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| *count <= MAX_TOKENS)
}

/// Returns an amount of dollars that somebody was charged.
pub(super) fn parse_dollars(value: f64) -> Option<Usd> {
    Usd::from_dollars(value).filter(|amount| *amount > Usd::ZERO)
}

impl PartialReply {
    /// Adds to the text, and says whether more of it would be read at all.
    pub(super) fn push_text(&mut self, text: &str) {
        // One byte more than may be read is enough to see that it is too long.
        if self.text.len() <= MAX_REPLY_BYTES {
            self.text.push_str(text);
        }
    }

    /// Adds to the model's words for not answering.
    pub(super) fn push_refusal(&mut self, text: &str) {
        if self.refusal.len() <= MAX_REPLY_BYTES {
            self.refusal.push_str(text);
        }
    }

    /// Returns why the model stopped writing.
    pub(super) fn finish(&self) -> FinishReason {
        if self.refusal.is_empty() {
            self.finish.unwrap_or(FinishReason::Complete)
        } else {
            FinishReason::Refused
        }
    }

    /// Reports whether the model has stopped and the provider has counted its tokens.
    pub(super) fn has_final_usage(&self) -> bool {
        self.finish.is_some() && self.reported.output.is_some()
    }

    /// Returns the answer, or the words of a model that did not give one.
    pub(super) fn into_text(self) -> String {
        if self.text.trim().is_empty() && !self.refusal.is_empty() {
            self.refusal
        } else {
            self.text
        }
    }

    /// Tells whether the text is longer than any that is read.
    pub(super) fn is_too_long(&self) -> bool {
        self.text.len() > MAX_REPLY_BYTES
    }

    /// Returns what the call used. A count that is missing or cannot be true is replaced by the call's
    /// bound, or by an estimate where nothing bounds it.
    pub(super) fn usage(&self, sent: &CallEstimate) -> TokenUsage {
        let estimate = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u64;
        let counted = &self.reported;
        let (most_input, most_output) = match sent.bound {
            Some(bound) => (bound.input_tokens, bound.output_tokens),
            None => (estimate(sent.prompt_bytes), estimate(self.text.len())),
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

    /// Returns what an answer used that was not heard to its end: as much as it may have, or at least
    /// what is there of it.
    pub(super) fn usage_so_far(&self, sent: &CallEstimate) -> TokenUsage {
        let mut usage = self.usage(sent);
        let written = self.text.len().div_ceil(BYTES_PER_TOKEN) as u64;
        let most = sent.bound.map_or(written, |bound| bound.output_tokens);
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
        let answer = |text: &str, input, output| PartialReply {
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
        for (answer, expected) in [
            (answer("abcdef", Some(10), Some(2)), usage(10, 2, 5)),
            (answer("abcdef", None, None), usage(100, 2, 5)),
            (answer("abcdef", Some(0), Some(0)), usage(100, 2, 5)),
            (answer("", Some(3), Some(0)), usage(3, 0, 3)),
        ] {
            let sent = CallEstimate {
                prompt_bytes: 300,
                bound: None,
            };
            assert_eq!(answer.usage(&sent), expected);
        }
    }

    #[test]
    fn unreported_usage_is_charged_at_the_bound_of_the_call() {
        let sent = CallEstimate {
            prompt_bytes: 300,
            bound: Some(TokenUsage {
                input_tokens: 1324,
                output_tokens: 5000,
                ..TokenUsage::default()
            }),
        };
        let answer = |input, output| PartialReply {
            text: "abcdef".into(),
            reported: ReportedUsage {
                input,
                output,
                ..ReportedUsage::default()
            },
            ..PartialReply::default()
        };
        let counts = |usage: TokenUsage| (usage.input_tokens, usage.output_tokens);
        for (answer, whole, cut) in [
            (answer(None, None), (1324, 5000), (1324, 5000)),
            (answer(Some(10), None), (10, 5000), (10, 5000)),
            (answer(Some(10), Some(2)), (10, 2), (10, 5000)),
        ] {
            assert_eq!(counts(answer.usage(&sent)), whole);
            assert_eq!(counts(answer.usage_so_far(&sent)), cut);
        }
    }
}

//! The output tokens that a call is billed for, from the counts of a provider.

/// The counts that decide how much output a call is billed for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputCounts {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer, with or without reasoning.
    pub output: u64,
    /// Tokens of reasoning.
    pub reasoning: u64,
    /// Tokens of the whole call, if the provider reports them.
    pub total: Option<u64>,
}

impl OutputCounts {
    /// Returns the output tokens with all reasoning.
    ///
    /// `OpenAI` counts reasoning as part of the answer, xAI counts it apart; the total shows which of
    /// the two it is. Reasoning that is longer than the answer cannot be a part of it.
    pub fn billed(&self) -> u64 {
        let without = self.input.saturating_add(self.output);
        let with = without.saturating_add(self.reasoning);
        if self.total == Some(without) {
            self.output.max(self.reasoning)
        } else if self.total == Some(with) || self.reasoning > self.output {
            self.output.saturating_add(self.reasoning)
        } else {
            self.output
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_billed_once() {
        for (output, reasoning, total, billed) in [
            (10, 0, Some(110), 10),
            // OpenAI: part of the answer.
            (10, 4, Some(110), 10),
            (10, 4, None, 10),
            // xAI: apart from it.
            (10, 4, Some(114), 14),
            (2, 300, Some(402), 302),
            (2, 300, None, 302),
            // A total that fits neither says nothing.
            (10, 4, Some(500), 10),
            (10, 300, Some(500), 310),
            // The answer cannot be shorter than its reasoning.
            (2, 300, Some(102), 300),
            (u64::MAX, u64::MAX, None, u64::MAX),
        ] {
            let counts = OutputCounts {
                input: 100,
                output,
                reasoning,
                total,
            };
            assert_eq!(counts.billed(), billed, "{counts:?}");
        }
    }
}

//! The billed output tokens of a call, computed from a provider's counts.

/// The counts that determine the billed output of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputCounts {
    pub input: u64,
    /// With or without reasoning, depending on the provider.
    pub output: u64,
    pub reasoning: u64,
    /// Tokens of the whole call, if the provider reports them.
    pub total: Option<u64>,
}

impl OutputCounts {
    /// Returns the output tokens including all reasoning.
    ///
    /// `OpenAI` counts reasoning as part of the output, xAI counts it separately; the total shows
    /// which. Reasoning that exceeds the output cannot be part of it.
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
            // OpenAI: part of the output.
            (10, 4, Some(110), 10),
            (10, 4, None, 10),
            // xAI: counted separately.
            (10, 4, Some(114), 14),
            (2, 300, Some(402), 302),
            (2, 300, None, 302),
            // A total that matches neither is ignored.
            (10, 4, Some(500), 10),
            (10, 300, Some(500), 310),
            // The output cannot be shorter than its reasoning.
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

//! The loop score, in tenths.

use std::fmt;

/// A measure of circling from 0.0 (none) to 1.0. It is stored in whole tenths, so that 0.5 and 0.2
/// add up to exactly 0.7.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoopScore(u8);

impl LoopScore {
    /// The lowest score at which a run is circling.
    pub const GUTTER: Self = Self(7);

    /// Creates a score from a sum of tenths, clamped to 0 to 10.
    pub fn from_tenths(tenths: i32) -> Self {
        Self(u8::try_from(tenths.clamp(0, 10)).unwrap_or(0))
    }

    /// Returns the score as a number such as `0.7`.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 10.0
    }

    /// Returns whether the run is circling.
    pub fn is_gutter(self) -> bool {
        self >= Self::GUTTER
    }
}

impl fmt::Display for LoopScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}", self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_tenths_is_a_gutter_and_scores_are_clamped() {
        for (tenths, value, fires) in [
            (-5, 0.0, false),
            (0, 0.0, false),
            (6, 0.6, false),
            (7, 0.7, true),
            (10, 1.0, true),
            (14, 1.0, true),
        ] {
            let score = LoopScore::from_tenths(tenths);
            assert_eq!(score.is_gutter(), fires, "{score}");
            assert!((score.value() - value).abs() < f64::EPSILON, "{score}");
        }
    }
}

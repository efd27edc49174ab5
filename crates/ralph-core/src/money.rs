//! Money in whole billionths of a dollar, so that sums of many small amounts stay exact.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A non-negative amount of US dollars. It is serialized as a number of dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd {
    nanos: u64,
}

impl PartialSchema for Usd {
    fn schema() -> RefOr<Schema> {
        f64::schema()
    }
}

impl ToSchema for Usd {}

const NANOS_PER_DOLLAR: u64 = 1_000_000_000;

impl Usd {
    /// No money.
    pub const ZERO: Self = Self { nanos: 0 };

    /// Creates an amount from billionths of a dollar.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos }
    }

    /// Rounds to the nearest billionth. Rejects amounts that are negative, not finite or above 1e9.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked in the line above"
    )]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let fits = dollars.is_finite() && (0.0..=1e9).contains(&dollars);
        fits.then(|| Self {
            nanos: (dollars * 1e9).round() as u64,
        })
    }

    /// Returns the amount in billionths of a dollar.
    pub const fn nanos(self) -> u64 {
        self.nanos
    }

    /// Subtracts `other`, stopping at zero.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_sub(other.nanos),
        }
    }

    /// Returns the amount in dollars, for display and JSON.
    #[expect(
        clippy::cast_precision_loss,
        reason = "nine decimal places stay exact up to millions of dollars"
    )]
    pub fn dollars(self) -> f64 {
        self.nanos as f64 / NANOS_PER_DOLLAR as f64
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
        }
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Usd {
    /// Prints two decimal places, or six for amounts below one cent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 || self.nanos >= NANOS_PER_DOLLAR / 100 {
            write!(f, "${:.2}", self.dollars())
        } else {
            write!(f, "${:.6}", self.dollars())
        }
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_dollars(dollars).ok_or_else(|| {
            serde::de::Error::custom(format!("`{dollars}` is not an amount of dollars"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sums_stay_exact() {
        let total: Usd = (0..1_000_000).map(|_| Usd::from_nanos(1_300)).sum();
        assert_eq!(total, Usd::from_dollars(1.3).unwrap());
    }

    #[test]
    fn amounts_survive_a_round_trip_through_json() {
        for nanos in [0, 1, 999, 10_000_001, 9_999_999_999, 123_456_789_012] {
            let amount = Usd::from_nanos(nanos);
            let text = serde_json::to_string(&amount).unwrap();
            assert_eq!(serde_json::from_str::<Usd>(&text).unwrap(), amount);
        }
        assert!(serde_json::from_str::<Usd>("-1").is_err());
        assert!(Usd::from_dollars(f64::NAN).is_none());
    }

    #[test]
    fn amounts_are_displayed_in_cents_or_finer() {
        assert_eq!(Usd::ZERO.to_string(), "$0.00");
        assert_eq!(Usd::from_dollars(1.239).unwrap().to_string(), "$1.24");
        assert_eq!(Usd::from_dollars(0.0012).unwrap().to_string(), "$0.001200");
    }
}

//! Values of `ralph.toml` with their own syntax.

use std::time::Duration;

use jiff::SignedDuration;
use ralph_core::parse_value;
use ralph_guest::available;
use serde::de::{self, Deserializer};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

/// An amount of memory, written as `8g`, `512m` or a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Memory {
    bytes: u64,
}

impl Memory {
    /// Creates a value from gibibytes.
    pub const fn from_gibibytes(number: u64) -> Self {
        Self {
            bytes: number << 30,
        }
    }

    /// Returns the number of bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Formats a number of bytes in the largest unit without a remainder, as in `ralph.toml`.
    pub fn written(bytes: u64) -> String {
        let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
        let unit = units
            .into_iter()
            .find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
        unit.map_or_else(
            || bytes.to_string(),
            |(shift, unit)| format!("{}{unit}", bytes >> shift),
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let lower = lower.strip_suffix('b').unwrap_or(&lower);
        let split = lower.find(|c: char| !c.is_ascii_digit());
        let (digits, unit) = lower.split_at(split.unwrap_or(lower.len()));
        let shift = match unit {
            "" => 0,
            "k" | "ki" => 10,
            "m" | "mi" => 20,
            "g" | "gi" => 30,
            "t" | "ti" => 40,
            _ => return None,
        };
        let bytes = parse_value::<u64>(digits)?.checked_mul(1 << shift)?;
        (bytes > 0).then_some(Self { bytes })
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserialize_scalar(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "`{text}` is not an amount of memory; write it like `8g` or `512m`"
            ))
        })
    }
}

/// A number of processors, possibly fractional, written as a number or a string.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Cpus {
    number: f64,
}

impl Cpus {
    /// Creates a value from a number of whole processors.
    pub fn from_whole(number: u32) -> Self {
        Self {
            number: f64::from(number),
        }
    }

    /// Returns the number of processors.
    pub fn count(self) -> f64 {
        self.number
    }

    /// Returns the number of processors in thousandths.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is positive, and the cast saturates"
    )]
    pub fn thousandths(self) -> u32 {
        (self.number * 1000.0) as u32
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserialize_scalar(deserializer)?;
        let number = parse_value::<f64>(text.trim());
        number
            .filter(|number| number.is_finite() && *number > 0.0)
            .map(|number| Self { number })
            .ok_or_else(|| {
                de::Error::custom(format!(
                    "`{text}` is not a number of processors; write it like `4` or `1.5`"
                ))
            })
    }
}

/// A time span, written as `12h`, `1h 30m`, `500ms` or a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSpan {
    time: Duration,
}

/// The longest time span of a setting.
const MAX_SPAN: Duration = Duration::from_hours(24 * 365);

impl TimeSpan {
    /// Creates a time span from a duration.
    pub const fn new(time: Duration) -> Self {
        Self { time }
    }

    /// Returns the duration.
    pub fn duration(self) -> Duration {
        self.time
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let time = match text.parse::<f64>() {
            Ok(seconds) => available(Duration::try_from_secs_f64(seconds))?,
            Err(_) => available(Duration::try_from(parse_value::<SignedDuration>(text)?))?,
        };
        (time <= MAX_SPAN).then_some(Self { time })
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserialize_scalar(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "`{text}` is not a duration; write it like `12h`, `90s` or `500ms`"
            ))
        })
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = SignedDuration::try_from(self.time).map_err(S::Error::custom)?;
        serializer.collect_str(&format_args!("{time:#}"))
    }
}

/// Deserializes a time span that is not zero.
pub(super) fn deserialize_nonzero_span<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<TimeSpan, D::Error> {
    let span = TimeSpan::deserialize(deserializer)?;
    if span.time.is_zero() {
        return Err(de::Error::custom("the time must be longer than 0"));
    }
    Ok(span)
}

/// Deserializes a string, or a number as a string.
fn deserialize_scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a string or a number")]
    enum ConfigScalar {
        Text(String),
        Whole(u64),
        Number(f64),
    }
    Ok(match ConfigScalar::deserialize(deserializer)? {
        ConfigScalar::Text(text) => text,
        ConfigScalar::Whole(number) => number.to_string(),
        ConfigScalar::Number(number) => number.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_accepts_several_notations() {
        for (text, bytes) in [
            ("8g", 8 << 30),
            ("8GB", 8 << 30),
            ("8GiB", 8 << 30),
            ("512m", 512 << 20),
            ("4096", 4096),
        ] {
            assert_eq!(Memory::parse(text).unwrap().bytes(), bytes, "{text}");
        }
        for text in ["", "g", "0", "8x", "-1g", "1.5g", "99999999999g"] {
            assert_eq!(Memory::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_span_accepts_several_notations() {
        for (text, milliseconds) in [
            ("12h", 43_200_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("10 min", 600_000),
            ("500ms", 500),
            ("2", 2_000),
            ("0.5", 500),
            ("0s", 0),
        ] {
            let span = TimeSpan::parse(text).unwrap();
            assert_eq!(
                span.duration(),
                Duration::from_millis(milliseconds),
                "{text}"
            );
            let written = serde_json::to_value(span).unwrap();
            assert_eq!(TimeSpan::parse(written.as_str().unwrap()), Some(span));
        }
        for text in ["", "h", "-1h", "-3", "soon", "9000h", "inf"] {
            assert_eq!(TimeSpan::parse(text), None, "{text}");
        }
    }
}

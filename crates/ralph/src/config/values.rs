//! Values of `ralph.toml` that are more than a text or a number.

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

/// An amount of memory, written as `8g`, `512m` or a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Memory {
    bytes: u64,
}

impl Memory {
    /// Takes gibibytes.
    pub const fn gibibytes(number: u64) -> Self {
        Self {
            bytes: number << 30,
        }
    }

    /// Returns the number of bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
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
        let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
        (bytes > 0).then_some(Self { bytes })
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = text_of(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "`{text}` is no amount of memory; write one like `8g` or `512m`"
            ))
        })
    }
}

/// A number of processors, whole or not, written as a number or a text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Cpus {
    number: f64,
}

impl Cpus {
    /// Takes a number of whole processors.
    pub fn whole(number: u32) -> Self {
        Self {
            number: f64::from(number),
        }
    }

    /// Returns the number.
    pub fn number(self) -> f64 {
        self.number
    }

    /// Returns the number in thousandths.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive, and more processors than fit are as many as fit"
    )]
    pub fn thousandths(self) -> u32 {
        (self.number * 1000.0) as u32
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = text_of(deserializer)?;
        let number = text.trim().parse::<f64>().ok();
        number
            .filter(|number| number.is_finite() && *number > 0.0)
            .map(|number| Self { number })
            .ok_or_else(|| {
                de::Error::custom(format!(
                    "`{text}` is no number of processors; write one like `4` or `1.5`"
                ))
            })
    }
}

/// Takes a text or a number as a text.
fn text_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a number")]
    enum Written {
        Text(String),
        Whole(u64),
        Number(f64),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(text) => text,
        Written::Whole(number) => number.to_string(),
        Written::Number(number) => number.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_written_in_several_ways() {
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
}

//! Parses durations of command lines and requests.

use std::time::Duration;

/// Parses a duration such as `90`, `90s`, `30m`, `12h` or `2d`. The default unit is seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let invalid = || "expected a number with `s`, `m`, `h` or `d`, such as `12h`".to_owned();
    let (digits, seconds) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        Some(b'd') => (&text[..text.len() - 1], 86_400),
        Some(_) | None => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    let number: u64 = digits.parse().map_err(|_| invalid())?;
    number
        .checked_mul(seconds)
        .map(Duration::from_secs)
        .ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit() {
        for (text, seconds) in [
            ("0", 0),
            ("90", 90),
            ("90s", 90),
            ("30m", 1800),
            ("12h", 43_200),
            ("2d", 172_800),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        let huge = format!("{}d", u64::MAX);
        for text in [
            "", "d", "1.5h", "-1h", "+1h", "1 h", "2w", "1h30m", "ü", &huge,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

//! Human-readable durations, counts, sizes and ages.

use std::time::Duration;

/// Formats a duration: `340ms`, `1.2s`, `2m 05s`, `1h 02m`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if duration < Duration::from_secs(1) {
        format!("{}ms", duration.as_millis())
    } else if seconds < 60 {
        format!("{}.{}s", seconds, duration.subsec_millis() / 100)
    } else if seconds < 3600 {
        format!("{}m {:02}s", seconds / 60, seconds % 60)
    } else {
        format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60)
    }
}

/// Formats a duration given in milliseconds.
pub fn milliseconds(milliseconds: u64) -> String {
    duration(Duration::from_millis(milliseconds))
}

/// Formats the time since an event in the largest unit: `12s`, `3m`, `5h`, `2d`.
pub fn age(now: jiff::Timestamp, then: jiff::Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// Formats a count with separators: `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 box`, `3 boxes`.
pub fn plural(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", count(number))
}

/// Formats a number of bytes: `512 B`, `12.3 KB`, `4.0 MB`.
pub fn bytes(number: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", number / unit, number % unit * 10 / unit);
    match number {
        0..1_000 => format!("{number} B"),
        1_000..1_000_000 => format!("{} KB", tenths(1_000)),
        _ => format!("{} MB", tenths(1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shortened() {
        for (given, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_250, "1.2s"),
            (59_999, "59.9s"),
            (125_000, "2m 05s"),
            (3_720_000, "1h 02m"),
        ] {
            assert_eq!(milliseconds(given), text);
        }
        assert_eq!(
            [count(1), count(999), count(1_234_567)],
            ["1", "999", "1,234,567"]
        );
        assert_eq!(
            [plural(1, "box", "boxes"), plural(0, "box", "boxes")],
            ["1 box", "0 boxes"]
        );
        assert_eq!(
            [bytes(12), bytes(12_345), bytes(4_000_000)],
            ["12 B", "12.3 KB", "4.0 MB"]
        );
        let now = "2026-03-01T10:00:00Z".parse().unwrap();
        for (then, text) in [
            ("2026-03-01T10:00:05Z", "0s ago"),
            ("2026-03-01T09:59:30Z", "30s ago"),
            ("2026-03-01T09:30:00Z", "30m ago"),
            ("2026-03-01T02:00:00Z", "8h ago"),
            ("2026-02-20T02:00:00Z", "9d ago"),
        ] {
            assert_eq!(age(now, then.parse().unwrap()), text);
        }
    }
}

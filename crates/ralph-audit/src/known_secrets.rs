//! Searches a file for the values of credentials, also in encoded or escaped form.
//!
//! The redactor matches while it reads and maps positions. This module uses a simple method: it
//! decodes escapes in the whole text, round by round, and searches the result of each round.

/// The number of decoding rounds: text in JSON in JSON takes two.
const MAX_DECODE_ROUNDS: usize = 4;
/// The minimum length of a value; shorter ones occur by chance.
const MIN_BYTES: usize = 12;

const ZERO_WIDTH: [&str; 9] = [
    "\u{200b}", "\u{200c}", "\u{200d}", "\u{200e}", "\u{200f}", "\u{2060}", "\u{feff}", "\u{ad}",
    "\u{202e}",
];

/// The values to search for.
#[derive(Debug, Default)]
pub(super) struct AuditSecrets {
    needles: Vec<(String, Vec<u8>)>,
    /// Whether a needle starts with two given bytes, indexed by [`prefix_index`].
    prefixes: Vec<bool>,
}

impl AuditSecrets {
    /// Creates the search values from credentials by name. Skips URLs, short values, and values
    /// without both a letter and a digit.
    pub(super) fn new(secrets: &[(String, String)]) -> Self {
        let mut needles = Vec::new();
        for (name, value) in secrets {
            let value = value.trim();
            let has = |is_kind: fn(&char) -> bool| value.chars().any(|c| is_kind(&c));
            let is_searched = value.len() >= MIN_BYTES
                && !value.contains("://")
                && has(char::is_ascii_digit)
                && has(char::is_ascii_alphabetic);
            if is_searched {
                let forms = encodings(value.as_bytes()).into_iter();
                needles.extend(forms.map(|form| (name.clone(), form)));
            }
        }
        let mut prefixes = vec![false; 1 << 16];
        for (_, needle) in &needles {
            prefixes[prefix_index(needle[0], needle[1])] = true;
        }
        Self { needles, prefixes }
    }

    /// Returns the name of a credential whose value is in a text, in any encoding.
    pub(super) fn find(&self, text: &[u8]) -> Option<&str> {
        if self.needles.is_empty() {
            return None;
        }
        let mut text = text.to_vec();
        for _ in 0..MAX_DECODE_ROUNDS {
            if let Some(name) = self.find_plain(&text) {
                return Some(name);
            }
            // A backslash may be part of the value, so escape sequences are removed before escapes
            // are decoded.
            let plain = strip_escape_sequences(&text);
            if let Some(name) = self.find_plain(&plain) {
                return Some(name);
            }
            let decoded = decode_escapes(&plain);
            if decoded == text {
                return None;
            }
            text = decoded;
        }
        self.find_plain(&text)
    }

    fn find_plain(&self, text: &[u8]) -> Option<&str> {
        let positions = text.windows(2).enumerate();
        let mut positions =
            positions.filter(|(_, pair)| self.prefixes[prefix_index(pair[0], pair[1])]);
        positions.find_map(|(at, _)| {
            let mut needles = self.needles.iter();
            let found = needles.find(|(_, needle)| text[at..].starts_with(needle))?;
            Some(found.0.as_str())
        })
    }
}

fn prefix_index(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// Returns a value unchanged, in hexadecimal and in base64 at each offset.
fn encodings(value: &[u8]) -> Vec<Vec<u8>> {
    let hex = |digits: &[u8; 16]| -> Vec<u8> {
        let digit = |byte: u8| {
            [
                digits[usize::from(byte >> 4)],
                digits[usize::from(byte & 15)],
            ]
        };
        value.iter().flat_map(|byte| digit(*byte)).collect()
    };
    let mut all = vec![
        value.to_vec(),
        hex(b"0123456789abcdef"),
        hex(b"0123456789ABCDEF"),
    ];
    for (plus, slash) in [(b'+', b'/'), (b'-', b'_')] {
        for offset in 0..3 {
            all.push(base64_core(value, offset, plus, slash));
        }
    }
    all
}

/// Returns the base64 digits that depend only on the value if it starts at byte `offset` of a
/// group.
fn base64_core(value: &[u8], offset: usize, plus: u8, slash: u8) -> Vec<u8> {
    let digit = |sextet: u8| match sextet {
        0..=25 => b'A' + sextet,
        26..=51 => b'a' + sextet - 26,
        52..=61 => b'0' + sextet - 52,
        62 => plus,
        _ => slash,
    };
    let bits: Vec<u8> = std::iter::repeat_n(0, offset)
        .chain(value.iter().copied())
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .collect();
    let first = (8 * offset).div_ceil(6) * 6;
    let whole = &bits[first..bits.len() - bits.len() % 6];
    let sextet = |bits: &[u8]| bits.iter().fold(0, |value, bit| value << 1 | bit);
    whole.chunks(6).map(|bits| digit(sextet(bits))).collect()
}

/// Returns a text without colour codes, links and zero-width characters.
pub(super) fn strip_escape_sequences(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(byte) = rest.first() {
        let dropped = match byte {
            0x1b => escape_sequence_length(rest),
            0xc2 | 0xe2 | 0xef => ZERO_WIDTH
                .iter()
                .find(|c| rest.starts_with(c.as_bytes()))
                .map_or(0, |c| c.len()),
            _ => 0,
        };
        if dropped == 0 {
            plain.push(*byte);
        }
        rest = &rest[dropped.max(1)..];
    }
    plain
}

/// Returns the length of the control sequence at the start of a text.
fn escape_sequence_length(text: &[u8]) -> usize {
    let until = |end: fn(&u8) -> bool, from: usize| {
        let found = text.iter().skip(from).take(256).position(end);
        found.map_or(1, |at| from + at + 1)
    };
    match text.get(1) {
        Some(b'[') => until(|byte| (0x40..=0x7e).contains(byte), 2),
        Some(b']') => match until(|byte| matches!(byte, 0x07 | 0x1b), 2) {
            end if text.get(end - 1) == Some(&0x1b) && end > 1 => end + 1,
            end => end,
        },
        Some(_) => 2,
        None => 1,
    }
    .min(text.len())
}

/// Decodes one layer of backslash, percent and XML escapes.
fn decode_escapes(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(byte) = rest.first() {
        let (length, decoded) = match byte {
            b'\\' => decode_backslash(rest),
            b'%' => decode_hex(rest, 1, 2),
            b'&' => decode_entity(rest),
            _ => (0, None),
        };
        if length == 0 {
            plain.push(*byte);
            rest = &rest[1..];
            continue;
        }
        if let Some(c) = decoded {
            let mut buffer = [0; 4];
            match u8::try_from(u32::from(c)) {
                // Percent, octal and `\x` escapes stand for single bytes of UTF-8.
                Ok(byte) if matches!(length, 3 | 4) => plain.push(byte),
                Ok(_) | Err(_) => plain.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes()),
            }
        }
        rest = &rest[length..];
    }
    plain
}

/// Returns the number of a digit string, or `None` if it has other characters.
fn parse_digits(digits: Option<&[u8]>, radix: u32) -> Option<u32> {
    let Ok(digits) = std::str::from_utf8(digits?) else {
        return None;
    };
    let Ok(number) = u32::from_str_radix(digits, radix) else {
        return None;
    };
    Some(number)
}

fn decode_hex(text: &[u8], from: usize, digits: usize) -> (usize, Option<char>) {
    let number = parse_digits(text.get(from..from + digits), 16);
    match number.and_then(char::from_u32) {
        Some(c) => (from + digits, Some(c)),
        None => (0, None),
    }
}

fn decode_backslash(text: &[u8]) -> (usize, Option<char>) {
    match text.get(1) {
        Some(b'u') => match decode_hex(text, 2, 4) {
            (0, _) => (1, None),
            found => found,
        },
        Some(b'x') => decode_hex(text, 2, 2),
        Some(b'n') => (2, Some('\n')),
        Some(b't') => (2, Some('\t')),
        Some(b'r') => (2, Some('\r')),
        Some(b'0'..=b'3') => {
            // Three octal digits that start with 0 to 3 are at most a byte.
            let number = parse_digits(text.get(1..4), 8).and_then(char::from_u32);
            number.map_or((1, None), |c| (4, Some(c)))
        }
        Some(b'\\') => (2, Some('\\')),
        Some(_) | None => (1, None),
    }
}

fn decode_entity(text: &[u8]) -> (usize, Option<char>) {
    let window = &text[..text.len().min(12)];
    let Some(end) = window.iter().position(|byte| *byte == b';') else {
        return (0, None);
    };
    let Ok(name) = std::str::from_utf8(&window[1..end]) else {
        return (0, None);
    };
    let number = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix(['x', 'X']) {
            Some(digits) => parse_digits(Some(digits.as_bytes()), 16),
            None => parse_digits(Some(digits.as_bytes()), 10),
        },
        None => None,
    };
    let decoded = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => number.and_then(char::from_u32),
    };
    decoded.map_or((0, None), |c| (end + 1, Some(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "Zq7/k\"9 x+\\4é";

    fn known() -> AuditSecrets {
        let secrets = [
            ("KEY", VALUE),
            ("WORD", "a-long-password"),
            ("SHORT", "a1b2c3"),
        ];
        AuditSecrets::new(&secrets.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    fn each_char(write: impl Fn(char) -> String) -> String {
        VALUE.chars().map(write).collect::<Vec<_>>().concat()
    }

    #[test]
    fn a_secret_is_found_in_every_encoding() {
        let json = |text: &str| {
            let quoted = serde_json::to_string(text).unwrap();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let percent: String = VALUE
            .bytes()
            .map(|byte| match byte {
                b'/' => "/".to_owned(),
                byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
                byte => format!("%{byte:02x}"),
            })
            .collect();
        let coloured = VALUE.replace("9 x", "9\u{1b}[31m \u{200b}x");
        for spelling in [
            VALUE.to_owned(),
            "WnE3L2siOSB4K1w0w6k=".to_owned(),
            "5a71372f6b223920782b5c34c3a9".to_owned(),
            json(VALUE),
            json(&json(VALUE)),
            json(&json(&json(VALUE))),
            percent.clone(),
            percent.replace('%', "%25"),
            coloured.clone(),
            json(&coloured),
            each_char(|c| format!("\\u{:04x}", u32::from(c))),
            VALUE
                .bytes()
                .map(|byte| format!("\\{byte:03o}"))
                .collect::<Vec<_>>()
                .concat(),
            each_char(|c| format!("&#{};", u32::from(c))),
        ] {
            let text = format!("before {spelling} after");
            assert_eq!(known().find(text.as_bytes()), Some("KEY"), "{spelling}");
        }
    }

    #[test]
    fn words_and_other_texts_are_not_found() {
        for text in [
            "a-long-password a1b2c3",
            "",
            "\\",
            "%",
            "&",
            "\u{1b}",
            "\u{1b}[",
            "\\u12",
        ] {
            assert_eq!(known().find(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(AuditSecrets::default().find(VALUE.as_bytes()), None);
    }
}

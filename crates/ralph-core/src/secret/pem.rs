//! Private keys between `-----BEGIN … PRIVATE KEY-----` and `-----END …-----`.
//!
//! Source code that only names the markers is unaffected: a block counts only if key-like text
//! follows. Then everything up to the closing marker is hidden, or everything up to the end if it
//! is missing; a key is often truncated, and its lines may have a log's prefix.

use super::patterns::{ScanText, SecretMatch};
use super::redaction_span::{DetectedToken, SecretExtent, SpanEnd};

const DASHES: &[u8] = b"-----";
const CLOSING: &[u8] = b"-----END ";
/// The longest label between the dashes of a marker.
const MAX_LABEL: usize = 64;
/// How much text after a marker is searched for a key, in bytes.
const WINDOW: usize = 256;
/// Minimum number of base64 digits in a key directly after the marker.
const MIN_KEY_DIGITS: usize = 16;
/// Minimum number of base64 digits in a key after other text, such as a log's prefix.
const MIN_DETACHED_KEY_DIGITS: usize = 40;

/// Matches the text after `-----BEGIN `.
pub(super) fn match_begin(text: ScanText<'_>, at: usize, label_start: usize) -> SecretMatch {
    let rest = &text.bytes[label_start..];
    let window = &rest[..rest.len().min(MAX_LABEL)];
    let Some(label_end) = find(window, DASHES) else {
        let is_full = window.len() == MAX_LABEL;
        let is_label = |byte: &u8| byte.is_ascii_uppercase() || b" -0123456789".contains(byte);
        return if is_full || !window.iter().all(is_label) {
            SecretMatch::No
        } else {
            text.undecided_at_end()
        };
    };
    let label = &window[..label_end];
    if !label.ends_with(b"PRIVATE KEY") && !label.ends_with(b"PRIVATE KEY BLOCK") {
        return SecretMatch::No;
    }
    let body = &rest[label_end + DASHES.len()..];
    if is_key(&body[..body.len().min(WINDOW)]) {
        SecretMatch::Secret(DetectedToken {
            from: at,
            body: at,
            extent: SecretExtent::Pem,
        })
    } else if body.len() >= WINDOW {
        SecretMatch::No
    } else {
        text.undecided_at_end()
    }
}

/// Returns whether the text contains key digits; more text never changes a positive result.
fn is_key(text: &[u8]) -> bool {
    let mut follows_directly = true;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let run = text[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte))
            .count();
        let digits = &text[at..at + run];
        let is_mixed = [
            u8::is_ascii_digit,
            u8::is_ascii_lowercase,
            u8::is_ascii_uppercase,
        ]
        .iter()
        .all(|class| digits.iter().any(class));
        if follows_directly && run >= MIN_KEY_DIGITS || run >= MIN_DETACHED_KEY_DIGITS && is_mixed {
            return true;
        }
        let is_separator = byte.is_ascii_whitespace() || b"\\\"'|>,".contains(byte);
        follows_directly &= run == 0 && is_separator;
        // The letter after a backslash belongs to the escape.
        at += if *byte == b'\\' { 2 } else { run.max(1) };
    }
    false
}

/// Finds the end of a block that starts at or before `from`.
pub(super) fn find_end(text: &[u8], from: usize) -> SpanEnd {
    let length = text.len();
    let open = |hold: usize| SpanEnd {
        at: length,
        is_open: true,
        hold,
        shared: hold,
    };
    let Some(closing) = find(&text[from..], CLOSING) else {
        return open((length + 1).saturating_sub(CLOSING.len()).max(from));
    };
    let closing = from + closing;
    let label = &text[closing + CLOSING.len()..];
    let window = &label[..label.len().min(MAX_LABEL)];
    let closed = |at: usize| SpanEnd {
        at,
        is_open: false,
        hold: length,
        shared: closing,
    };
    match find(window, DASHES) {
        Some(dashes) => closed(closing + CLOSING.len() + dashes + DASHES.len()),
        None if window.len() == MAX_LABEL => closed(closing + CLOSING.len()),
        None => open(closing),
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

//! Finds tokens by their shape.
//!
//! One search for the literals of [`SHAPES`] finds the candidates. The text after each is then
//! matched byte by byte, because a hand-written matcher can report that it needs more text, and a
//! regular expression cannot.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::TokenShapes;
use super::pem;
use super::redaction_span::{DetectedToken, RedactionSpan, SecretExtent};
use super::shapes::{ByteClass, SHAPES, SecretShape, TokenBody, TokenHeuristic};

/// The longest header of a JSON web token.
const MAX_JWT_HEADER: usize = 4096;
/// The shortest header of a JSON web token: `{"alg":…}` in base64.
const MIN_JWT_HEADER: usize = 10;
/// The longest `user:password@host`.
const MAX_AUTHORITY: usize = 1024;
/// Maximum number of quotes and blanks between a header's name and its value.
const MAX_SEPARATOR: usize = 16;
/// The longest name of an authorization scheme.
const MAX_SCHEME: usize = 20;
/// The start of a placeholder from an earlier redaction.
const PLACEHOLDER: &[u8] = b"[REDACTED";

static LITERALS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(SHAPES.iter().map(|(literal, _)| literal))
        .expect("a few dozen short literals build a small automaton")
});

/// The result of matching a candidate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SecretMatch {
    /// The candidate is not a secret.
    No,
    /// The text ends too early to decide.
    Undecided,
    /// The candidate is a secret.
    Secret(DetectedToken),
}

impl SecretMatch {
    fn from_decision(known: Option<bool>, token: DetectedToken) -> Self {
        match known {
            None => Self::Undecided,
            Some(false) => Self::No,
            Some(true) => Self::Secret(token),
        }
    }
}

/// The text to scan, and whether it is complete.
#[derive(Clone, Copy)]
pub(super) struct ScanText<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether no more text follows.
    pub(super) is_last: bool,
}

impl ScanText<'_> {
    /// Returns the result for text that ends too early.
    pub(super) fn undecided_at_end(self) -> SecretMatch {
        if self.is_last {
            SecretMatch::No
        } else {
            SecretMatch::Undecided
        }
    }
}

/// Adds a span for every token with a literal at or after `start`.
///
/// Returns the first position at which more text could change the result, or the end.
pub(super) fn scan(
    text: ScanText<'_>,
    start: usize,
    shapes: TokenShapes,
    spans: &mut Vec<RedactionSpan>,
) -> usize {
    if shapes == TokenShapes::None {
        return text.bytes.len();
    }
    let mut runs: Vec<(SecretExtent, usize)> = spans
        .iter()
        .filter(|span| span.from <= start)
        .map(|span| (span.extent, span.end.shared))
        .collect();
    let mut header_end = start;
    let mut hold = unfinished_literal(text, start);
    let mut from = start;
    while let Some(found) = LITERALS.find(Input::new(text.bytes).span(from..text.bytes.len())) {
        let at = found.start();
        if at >= hold {
            break;
        }
        let kind = SHAPES[found.pattern().as_usize()].1;
        if shapes == TokenShapes::Issued && !is_issued(kind) {
            from = at + 1;
            continue;
        }
        match match_shape(kind, text, at, found.end(), &mut header_end) {
            SecretMatch::No => {}
            SecretMatch::Undecided => hold = at,
            // The token is part of a secret of the same kind.
            SecretMatch::Secret(token)
                if runs
                    .iter()
                    .any(|(run, end)| *run == token.extent && token.body < *end) => {}
            SecretMatch::Secret(token) => {
                let span = RedactionSpan::for_token(text.bytes, at, token);
                if !matches!(token.extent, SecretExtent::To(_)) {
                    runs.retain(|(run, _)| *run != token.extent);
                    runs.push((token.extent, span.end.shared));
                }
                spans.push(span);
            }
        }
        from = at + 1;
    }
    hold
}

/// Returns whether a shape has its issuer's prefix or is a private key.
fn is_issued(kind: SecretShape) -> bool {
    match kind {
        SecretShape::Token(_) | SecretShape::StandaloneToken(_) | SecretShape::Pem => true,
        SecretShape::Bearer
        | SecretShape::Header
        | SecretShape::Assigned
        | SecretShape::Jwt
        | SecretShape::Authority => false,
    }
}

/// Returns the start of an unfinished literal at the end of the text, or the end.
fn unfinished_literal(text: ScanText<'_>, start: usize) -> usize {
    let length = text.bytes.len();
    let longest = SHAPES.iter().map(|(literal, _)| literal.len()).max();
    let tail = start.max((length + 1).saturating_sub(longest.unwrap_or(0)));
    let is_unfinished = |at: &usize| {
        let rest = &text.bytes[*at..];
        let begins =
            |literal: &str| literal.len() > rest.len() && literal.as_bytes().starts_with(rest);
        SHAPES.iter().any(|(literal, _)| begins(literal))
    };
    (tail..length)
        .find(|at| !text.is_last && is_unfinished(at))
        .unwrap_or(length)
}

fn match_shape(
    kind: SecretShape,
    text: ScanText<'_>,
    at: usize,
    end: usize,
    header_end: &mut usize,
) -> SecretMatch {
    match kind {
        SecretShape::Token(body) => match_token(body, text, at, end),
        SecretShape::StandaloneToken(body) if is_word_start(&text.bytes[..at]) => {
            match_token(body, text, at, end)
        }
        SecretShape::StandaloneToken(_) => SecretMatch::No,
        SecretShape::Bearer => match_bearer(text, end),
        SecretShape::Header => match_header(text, end),
        SecretShape::Assigned => match_assignment(text, end),
        SecretShape::Jwt => match_jwt(text, at, header_end),
        SecretShape::Pem => pem::match_begin(text, at, end),
        SecretShape::Authority => match_authority(text, end),
    }
}

fn match_token(shape: TokenBody, text: ScanText<'_>, from: usize, body: usize) -> SecretMatch {
    let known = shape.matches_start(&text.bytes[body..], text.is_last);
    let extent = SecretExtent::While(shape.class);
    SecretMatch::from_decision(known, DetectedToken { from, body, extent })
}

/// The bytes before a position that a match depends on.
pub(super) const CONTEXT: usize = 3;

/// Returns whether a word starts after this text: the text ends without a letter or digit, or with
/// an escape (`\n`, `%3D`).
fn is_word_start(before: &[u8]) -> bool {
    let in_escape = match before {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', high, low] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        _ => false,
    };
    in_escape
        || before
            .last()
            .is_none_or(|last| !last.is_ascii_alphanumeric())
}

/// The text between a name and its value.
struct ValueSeparator {
    /// Start of the value.
    end: usize,
    /// In bytes.
    length: usize,
    /// The number of colons and equals signs.
    signs: usize,
}

/// Reads blanks, quotes and at most `signs` colons or equals signs.
fn read_separator(
    text: ScanText<'_>,
    from: usize,
    signs: usize,
) -> Result<ValueSeparator, SecretMatch> {
    let mut found = ValueSeparator {
        end: from,
        length: 0,
        signs: 0,
    };
    loop {
        found.length = found.end - from;
        match text.bytes.get(found.end) {
            None => return Err(text.undecided_at_end()),
            Some(_) if found.length > MAX_SEPARATOR => return Err(SecretMatch::No),
            Some(b' ' | b'\t' | b'"' | b'\'' | b'`' | b'\\') => {}
            Some(b':' | b'=') if found.signs < signs => found.signs += 1,
            // The arrow of a map.
            Some(b'>') if text.bytes[..found.end].ends_with(b"=") => {}
            Some(_) => return Ok(found),
        }
        found.end += 1;
    }
}

/// Matches the text after `Bearer`: blanks of any kind, or a colon as in `bearer: value`.
fn match_bearer(text: ScanText<'_>, name_end: usize) -> SecretMatch {
    let mut from = name_end;
    while text.bytes[from..].starts_with(b"%20") {
        from += 3;
    }
    let rest = &text.bytes[from..];
    if rest.len() < 3 && b"%20".starts_with(rest) {
        return text.undecided_at_end();
    }
    let between = match read_separator(text, from, 1) {
        Ok(between) => between,
        Err(result) => return result,
    };
    if from + between.length == name_end {
        return SecretMatch::No;
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let heuristic = if text.bytes[from..between.end].iter().all(is_blank) {
        TokenHeuristic::DigitOrLong
    } else {
        // A variable of that name is more likely than a header.
        TokenHeuristic::Random
    };
    let body = TokenBody {
        class: ByteClass::Bearer,
        min_length: 12,
        heuristic,
    };
    match_token(body, text, between.end, between.end)
}

/// Matches the text after the name of a credential: `= value`, `": "value`, ` => 'value`.
fn match_assignment(text: ScanText<'_>, name_end: usize) -> SecretMatch {
    let between = match read_separator(text, name_end, 2) {
        Ok(between) => between,
        Err(result) => return result,
    };
    if between.signs == 0 {
        return SecretMatch::No;
    }
    let body = TokenBody {
        class: ByteClass::Slug,
        min_length: 16,
        heuristic: TokenHeuristic::Mixed,
    };
    let from = between.end;
    let known = body.matches_start(&text.bytes[from..], text.is_last);
    let token = DetectedToken {
        from,
        body: from,
        extent: SecretExtent::While(ByteClass::Header),
    };
    SecretMatch::from_decision(known, token)
}

/// Matches the text after a header's name: `: value`, `: Scheme value`, `": "value`.
fn match_header(text: ScanText<'_>, name_end: usize) -> SecretMatch {
    let between = match read_separator(text, name_end, 1) {
        Ok(between) => between,
        Err(result) => return result,
    };
    if between.signs == 0 {
        return SecretMatch::No;
    }
    let mut at = between.end;
    let scheme = ByteClass::Slug.run(&text.bytes[at..]).min(MAX_SCHEME + 1);
    let mut heuristic = TokenHeuristic::DigitOrLong;
    match text.bytes.get(at + scheme) {
        None if !text.is_last => return SecretMatch::Undecided,
        Some(b' ' | b'\t') if (1..=MAX_SCHEME).contains(&scheme) => {
            if text.bytes[at..at + scheme].eq_ignore_ascii_case(b"basic") {
                heuristic = TokenHeuristic::DigitOrCapital;
            }
            let rest = &text.bytes[at + scheme..];
            let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
            let blanks = rest.iter().take(MAX_SEPARATOR).take_while(is_blank).count();
            if blanks == rest.len() && !text.is_last {
                return SecretMatch::Undecided;
            }
            at += scheme + blanks;
        }
        None | Some(_) => {}
    }
    let body = TokenBody {
        class: ByteClass::Header,
        min_length: 8,
        heuristic,
    };
    match_token(body, text, at, at)
}

/// Matches `header.payload`, with or without a signature.
///
/// `header_end` caches the end of the digits, since the literal may occur repeatedly in one long
/// run.
fn match_jwt(text: ScanText<'_>, at: usize, header_end: &mut usize) -> SecretMatch {
    let known = at.max(*header_end);
    let end = known + ByteClass::Slug.run(&text.bytes[known..]);
    *header_end = end;
    let length = end - at;
    match text.bytes.get(end) {
        _ if length > MAX_JWT_HEADER => SecretMatch::No,
        None => text.undecided_at_end(),
        Some(b'.') if length >= MIN_JWT_HEADER => {
            let payload = TokenBody {
                class: ByteClass::Slug,
                min_length: 8,
                heuristic: TokenHeuristic::Any,
            };
            let known = payload.matches_start(&text.bytes[end + 1..], text.is_last);
            let token = DetectedToken {
                from: at,
                body: at,
                extent: SecretExtent::While(ByteClass::Dotted),
            };
            SecretMatch::from_decision(known, token)
        }
        Some(_) => SecretMatch::No,
    }
}

/// Matches `user:password@`. Both parts are secret, because the user is often the token.
fn match_authority(text: ScanText<'_>, from: usize) -> SecretMatch {
    let rest = &text.bytes[from..];
    let window = &rest[..rest.len().min(MAX_AUTHORITY)];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?#\"'`<>\\".contains(byte);
    let length = window.iter().position(ends);
    if length.is_none() && rest.len() < MAX_AUTHORITY && !text.is_last {
        return SecretMatch::Undecided;
    }
    let whole = &window[..length.unwrap_or(window.len())];
    let Some(user_end) = whole.iter().rposition(|byte| *byte == b'@') else {
        return SecretMatch::No;
    };
    let user = &whole[..user_end];
    let Some(colon) = user.iter().position(|byte| *byte == b':') else {
        return SecretMatch::No;
    };
    match user.get(colon + 1) {
        // A template variable or a masked value is not a password.
        None | Some(b'$' | b'{' | b'*' | b'[') => SecretMatch::No,
        Some(_) if user.starts_with(PLACEHOLDER) => SecretMatch::No,
        Some(_) => SecretMatch::Secret(DetectedToken {
            from,
            body: from,
            extent: SecretExtent::To(from + user_end),
        }),
    }
}

//! Finds tokens by their shape.
//!
//! One search for the literals of [`SHAPES`] finds the candidates; what follows each is then read
//! byte by byte, because a reader can say "not enough text yet" where a regular expression cannot.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::Shapes;
use super::cover::{Cover, Extent, Token};
use super::pem;
use super::shapes::{Body, Class, Kind, Look, SHAPES};

/// The longest first part of a signed token.
const MOST_JWT_HEADER: usize = 4096;
/// The shortest first part of a signed token: `{"alg":…}` in base64.
const LEAST_JWT_HEADER: usize = 10;
/// The longest `user:password@host`.
const MOST_AUTHORITY: usize = 1024;
/// How many quotes and blanks may stand between a header's name and its value.
const MOST_BETWEEN: usize = 16;
/// The longest name of an authorization scheme.
const MOST_SCHEME: usize = 20;
/// How a text starts that was redacted before.
const PLACEHOLDER: &[u8] = b"[REDACTED";

static LITERALS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(SHAPES.iter().map(|(literal, _)| literal))
        .expect("a few dozen short literals make a small automaton")
});

/// What a closer look at a candidate says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is no secret.
    No,
    /// The text ends too early to tell.
    Undecided,
    /// It is one.
    Secret(Token),
}

impl Answer {
    fn when(known: Option<bool>, token: Token) -> Self {
        match known {
            None => Self::Undecided,
            Some(false) => Self::No,
            Some(true) => Self::Secret(token),
        }
    }
}

/// A text, and whether it is known to end where it ends.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    /// Its bytes.
    pub(super) bytes: &'a [u8],
    /// Whether nothing follows.
    pub(super) is_last: bool,
}

impl Text<'_> {
    /// Returns the answer where the text ends before its meaning is clear.
    pub(super) fn at_its_end(self) -> Answer {
        if self.is_last {
            Answer::No
        } else {
            Answer::Undecided
        }
    }
}

/// Adds a cover for every token whose literal starts at `start` or later.
///
/// Returns the first position where more text could change the answer; without one, the end.
pub(super) fn scan(text: Text<'_>, start: usize, shapes: Shapes, covers: &mut Vec<Cover>) -> usize {
    if shapes == Shapes::None {
        return text.bytes.len();
    }
    let mut runs: Vec<(Extent, usize)> = covers
        .iter()
        .filter(|cover| cover.from <= start)
        .map(|cover| (cover.extent, cover.end.shared))
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
        if shapes == Shapes::Issued && !is_issued(kind) {
            from = at + 1;
            continue;
        }
        match answer(kind, text, at, found.end(), &mut header_end) {
            Answer::No => {}
            Answer::Undecided => hold = at,
            // It lies inside a secret of its kind.
            Answer::Secret(token)
                if runs
                    .iter()
                    .any(|(run, end)| *run == token.extent && token.body < *end) => {}
            Answer::Secret(token) => {
                let cover = Cover::token(text.bytes, at, token);
                if !matches!(token.extent, Extent::To(_)) {
                    runs.retain(|(run, _)| *run != token.extent);
                    runs.push((token.extent, cover.end.shared));
                }
                covers.push(cover);
            }
        }
        from = at + 1;
    }
    hold
}

/// Tells whether a shape carries the mark of its issuer, or is a private key.
fn is_issued(kind: Kind) -> bool {
    match kind {
        Kind::Token(_) | Kind::TokenApart(_) | Kind::Pem => true,
        Kind::Bearer | Kind::Header | Kind::Assigned | Kind::Jwt | Kind::Authority => false,
    }
}

/// Returns where the text ends inside a literal.
fn unfinished_literal(text: Text<'_>, start: usize) -> usize {
    let length = text.bytes.len();
    let longest = SHAPES.iter().map(|(literal, _)| literal.len()).max();
    let tail = start.max((length + 1).saturating_sub(longest.unwrap_or(0)));
    let is_begun = |at: &usize| {
        let rest = &text.bytes[*at..];
        let begins =
            |literal: &str| literal.len() > rest.len() && literal.as_bytes().starts_with(rest);
        SHAPES.iter().any(|(literal, _)| begins(literal))
    };
    (tail..length)
        .find(|at| !text.is_last && is_begun(at))
        .unwrap_or(length)
}

fn answer(kind: Kind, text: Text<'_>, at: usize, end: usize, header_end: &mut usize) -> Answer {
    match kind {
        Kind::Token(body) => token(body, text, at, end),
        Kind::TokenApart(body) if stands_apart(&text.bytes[..at]) => token(body, text, at, end),
        Kind::TokenApart(_) => Answer::No,
        Kind::Bearer => bearer(text, end),
        Kind::Header => header(text, end),
        Kind::Assigned => assigned(text, end),
        Kind::Jwt => jwt(text, at, header_end),
        Kind::Pem => pem::begin(text, at, end),
        Kind::Authority => authority(text, end),
    }
}

fn token(shape: Body, text: Text<'_>, from: usize, body: usize) -> Answer {
    let known = shape.starts(&text.bytes[body..], text.is_last);
    let extent = Extent::While(shape.class);
    Answer::when(known, Token { from, body, extent })
}

/// How many bytes before a position are needed to answer for it.
pub(super) const CONTEXT: usize = 3;

/// Tells whether a word starts after some text: there is no letter or digit, or it belongs to an
/// escape (`\n`, `%3D`).
fn stands_apart(before: &[u8]) -> bool {
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

/// What stands between a name and its value.
struct Between {
    /// Where the value starts.
    end: usize,
    /// How many bytes there are.
    length: usize,
    /// How many of them are colons and equals signs.
    signs: usize,
}

/// Reads blanks, quotes and at most `signs` colons or equals signs.
fn between(text: Text<'_>, from: usize, signs: usize) -> Result<Between, Answer> {
    let mut found = Between {
        end: from,
        length: 0,
        signs: 0,
    };
    loop {
        found.length = found.end - from;
        match text.bytes.get(found.end) {
            None => return Err(text.at_its_end()),
            Some(_) if found.length > MOST_BETWEEN => return Err(Answer::No),
            Some(b' ' | b'\t' | b'"' | b'\'' | b'`' | b'\\') => {}
            Some(b':' | b'=') if found.signs < signs => found.signs += 1,
            // The arrow of a map.
            Some(b'>') if text.bytes[..found.end].ends_with(b"=") => {}
            Some(_) => return Ok(found),
        }
        found.end += 1;
    }
}

/// Reads what follows `Bearer`: blanks of any kind, or a colon as in `bearer: value`.
fn bearer(text: Text<'_>, name_end: usize) -> Answer {
    let mut from = name_end;
    while text.bytes[from..].starts_with(b"%20") {
        from += 3;
    }
    let rest = &text.bytes[from..];
    if rest.len() < 3 && b"%20".starts_with(rest) {
        return text.at_its_end();
    }
    let between = match between(text, from, 1) {
        Ok(between) => between,
        Err(answer) => return answer,
    };
    if from + between.length == name_end {
        return Answer::No;
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let look = if text.bytes[from..between.end].iter().all(is_blank) {
        Look::DigitOrLong
    } else {
        // A variable of that name is more likely than a header.
        Look::Random
    };
    let body = Body {
        class: Class::Bearer,
        least: 12,
        look,
    };
    token(body, text, between.end, between.end)
}

/// Reads what follows the name of a credential: `= value`, `": "value`, ` => 'value`.
fn assigned(text: Text<'_>, name_end: usize) -> Answer {
    let between = match between(text, name_end, 2) {
        Ok(between) => between,
        Err(answer) => return answer,
    };
    if between.signs == 0 {
        return Answer::No;
    }
    let body = Body {
        class: Class::Slug,
        least: 16,
        look: Look::Mixed,
    };
    let from = between.end;
    let known = body.starts(&text.bytes[from..], text.is_last);
    let token = Token {
        from,
        body: from,
        extent: Extent::While(Class::Header),
    };
    Answer::when(known, token)
}

/// Reads what follows a header's name: `: value`, `: Scheme value`, `": "value`.
fn header(text: Text<'_>, name_end: usize) -> Answer {
    let between = match between(text, name_end, 1) {
        Ok(between) => between,
        Err(answer) => return answer,
    };
    if between.signs == 0 {
        return Answer::No;
    }
    let mut at = between.end;
    let scheme = Class::Slug.run(&text.bytes[at..]).min(MOST_SCHEME + 1);
    let mut look = Look::DigitOrLong;
    match text.bytes.get(at + scheme) {
        None if !text.is_last => return Answer::Undecided,
        Some(b' ' | b'\t') if (1..=MOST_SCHEME).contains(&scheme) => {
            if text.bytes[at..at + scheme].eq_ignore_ascii_case(b"basic") {
                look = Look::DigitOrCapital;
            }
            let rest = &text.bytes[at + scheme..];
            let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
            let blanks = rest.iter().take(MOST_BETWEEN).take_while(is_blank).count();
            if blanks == rest.len() && !text.is_last {
                return Answer::Undecided;
            }
            at += scheme + blanks;
        }
        None | Some(_) => {}
    }
    let body = Body {
        class: Class::Header,
        least: 8,
        look,
    };
    token(body, text, at, at)
}

/// Reads `header.payload.signature`.
///
/// `header_end` remembers how far the digits were seen to reach: the literal may occur again and
/// again in one long run.
fn jwt(text: Text<'_>, at: usize, header_end: &mut usize) -> Answer {
    let known = at.max(*header_end);
    let end = known + Class::Slug.run(&text.bytes[known..]);
    *header_end = end;
    let length = end - at;
    match text.bytes.get(end) {
        _ if length > MOST_JWT_HEADER => Answer::No,
        None => text.at_its_end(),
        Some(b'.') if length >= LEAST_JWT_HEADER => {
            let payload = Body {
                class: Class::Slug,
                least: 8,
                look: Look::Any,
            };
            let known = payload.starts(&text.bytes[end + 1..], text.is_last);
            let token = Token {
                from: at,
                body: at,
                extent: Extent::While(Class::Dotted),
            };
            Answer::when(known, token)
        }
        Some(_) => Answer::No,
    }
}

/// Reads `user:password@`, and finds both secret, for many use the token as the user.
fn authority(text: Text<'_>, from: usize) -> Answer {
    let rest = &text.bytes[from..];
    let window = &rest[..rest.len().min(MOST_AUTHORITY)];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?#\"'`<>\\".contains(byte);
    let length = window.iter().position(ends);
    if length.is_none() && rest.len() < MOST_AUTHORITY && !text.is_last {
        return Answer::Undecided;
    }
    let whole = &window[..length.unwrap_or(window.len())];
    let Some(user_end) = whole.iter().rposition(|byte| *byte == b'@') else {
        return Answer::No;
    };
    let user = &whole[..user_end];
    let Some(colon) = user.iter().position(|byte| *byte == b':') else {
        return Answer::No;
    };
    match user.get(colon + 1) {
        // A variable of a template, or stars by somebody else, are no password.
        None | Some(b'$' | b'{' | b'*' | b'[') => Answer::No,
        Some(_) if user.starts_with(PLACEHOLDER) => Answer::No,
        Some(_) => Answer::Secret(Token {
            from,
            body: from,
            extent: Extent::To(from + user_end),
        }),
    }
}

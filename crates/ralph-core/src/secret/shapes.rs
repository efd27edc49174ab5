//! The shapes by which unknown tokens are recognised.
//!
//! Each starts with a literal that its issuer chose to be recognisable. Some of these occur in
//! ordinary text, too (`task-force`, `npm_config_cache`), so each row describes the text after it.

use super::escapes::invisible_length;

/// A set of bytes that a secret consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteClass {
    /// `A-Z0-9`
    Upper,
    /// `A-Za-z0-9`
    Alphanumeric,
    /// `A-Za-z0-9_`
    Word,
    /// `A-Za-z0-9_-`, the digits of base64url.
    Slug,
    /// `A-Za-z0-9_.-`
    Dotted,
    /// Bytes after `Bearer`: `A-Za-z0-9._~+/=-`
    Bearer,
    /// A header's value without spaces and without the delimiters of source code.
    Header,
}

impl ByteClass {
    /// Returns whether a byte is in the set.
    pub(super) fn contains(self, byte: u8) -> bool {
        let alphanumeric = byte.is_ascii_alphanumeric();
        match self {
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Alphanumeric => alphanumeric,
            Self::Word => alphanumeric || byte == b'_',
            Self::Slug => alphanumeric || matches!(byte, b'_' | b'-'),
            Self::Dotted => alphanumeric || matches!(byte, b'_' | b'.' | b'-'),
            Self::Bearer => alphanumeric || b"._~+/=-".contains(&byte),
            Self::Header => byte.is_ascii_graphic() && !b"\"'`\\,;<>{}()[]$".contains(&byte),
        }
    }

    /// Returns the length of the leading bytes in the set, including colour codes and invisible
    /// characters between them, and whether more text may extend them.
    pub(super) fn reach(self, text: &[u8]) -> (usize, bool) {
        let mut at = 0;
        loop {
            at += self.run(&text[at..]);
            let Some(invisible) = invisible_length(&text[at..]) else {
                return (at, true);
            };
            let next = text.get(at + invisible).copied();
            if invisible == 0 || !next.is_some_and(|byte| self.contains(byte)) {
                return (at, false);
            }
            at += invisible;
        }
    }

    /// Returns the leading bytes in the set, up to `most`, without colour codes and invisible
    /// characters between them, and whether more text may extend them.
    fn gather(self, text: &[u8], most: usize) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        let mut at = 0;
        loop {
            let rest = &text[at..];
            let run = self.run(&rest[..rest.len().min(most - bytes.len())]);
            bytes.extend_from_slice(&text[at..at + run]);
            at += run;
            if bytes.len() == most {
                return (bytes, false);
            }
            match invisible_length(&text[at..]) {
                None => return (bytes, true),
                Some(0) => return (bytes, false),
                Some(invisible) => at += invisible,
            }
        }
    }

    /// Returns the number of leading bytes in the set.
    pub(super) fn run(self, text: &[u8]) -> usize {
        text.iter()
            .position(|byte| !self.contains(*byte))
            .unwrap_or(text.len())
    }
}

/// Distinguishes tokens from words. More bytes never change a positive result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenHeuristic {
    /// The literal before it suffices.
    Any,
    /// A digit and a capital, or four digits, unlike compound words.
    Random,
    /// A digit, or longer than names in source code.
    DigitOrLong,
    /// A digit or a capital.
    DigitOrCapital,
    /// Alternating letters and digits, or long with both cases, unlike names in source code.
    Mixed,
}

impl TokenHeuristic {
    /// The shortest token without a digit.
    const LONG: usize = 32;
    /// Minimum number of transitions between letters and digits in a random token.
    const MIN_TRANSITIONS: usize = 3;
    /// The shortest token with fewer transitions.
    const LONG_MIXED: usize = 24;

    fn matches(self, token: &[u8]) -> bool {
        let digits = token.iter().filter(|byte| byte.is_ascii_digit()).count();
        let capital = token.iter().any(u8::is_ascii_uppercase);
        match self {
            Self::Any => true,
            Self::Random => digits >= 4 || digits >= 1 && capital,
            Self::DigitOrLong => digits >= 1 || token.len() >= Self::LONG,
            Self::DigitOrCapital => digits >= 1 || capital,
            Self::Mixed => {
                let small = token.iter().any(u8::is_ascii_lowercase);
                let is_long = token.len() >= Self::LONG_MIXED;
                Self::count_transitions(token) >= Self::MIN_TRANSITIONS
                    || is_long && digits >= 2 && capital && small
            }
        }
    }

    /// Counts the transitions between letters and digits.
    fn count_transitions(token: &[u8]) -> usize {
        let is_transition = |pair: &[u8]| {
            pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic()
                || pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit()
        };
        token.windows(2).filter(|pair| is_transition(pair)).count()
    }
}

/// The text that must follow a literal.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenBody {
    pub(super) class: ByteClass,
    pub(super) min_length: usize,
    pub(super) heuristic: TokenHeuristic,
}

impl TokenBody {
    /// Maximum number of bytes that a decision depends on.
    const WINDOW: usize = 64;

    /// Returns whether `text` starts with such a body; `None` if it ends too early to decide.
    pub(super) fn matches_start(self, text: &[u8], is_last: bool) -> Option<bool> {
        let (token, may_grow) = self.class.gather(text, Self::WINDOW);
        if token.len() >= self.min_length && self.heuristic.matches(&token) {
            return Some(true);
        }
        (is_last || !may_grow).then_some(false)
    }
}

/// The interpretation of a literal.
#[derive(Debug, Clone, Copy)]
pub(super) enum SecretShape {
    /// The literal and the body after it are a token.
    Token(TokenBody),
    /// Like `Token`, but not inside a word.
    StandaloneToken(TokenBody),
    /// The name of a scheme; the body after a separator is a token.
    Bearer,
    /// The name of a header with a credential as its value.
    Header,
    /// The name of a variable or a key; a long random value assigned to it is a credential.
    Assigned,
    /// The first digits of a JSON object in base64: a JSON web token if a dot and a payload follow.
    Jwt,
    /// The opening of a PEM block.
    Pem,
    /// The separator between a scheme and a user.
    Authority,
}

const fn token_body(class: ByteClass, min_length: usize, heuristic: TokenHeuristic) -> TokenBody {
    TokenBody {
        class,
        min_length,
        heuristic,
    }
}

/// The literals and their shapes.
///
/// Real tokens are longer than the minimum here, so that truncated tokens are hidden, too.
pub(super) const SHAPES: [(&str, SecretShape); 53] = {
    use ByteClass as C;
    use SecretShape::{Assigned, Authority, Bearer, Header, Jwt, Pem, StandaloneToken, Token};
    use TokenHeuristic as L;
    [
        // GitHub. Installation tokens may contain a JSON web token with its dots and dashes.
        ("ghp_", Token(token_body(C::Word, 20, L::Any))),
        ("gho_", Token(token_body(C::Word, 20, L::Any))),
        ("ghu_", Token(token_body(C::Dotted, 20, L::Any))),
        ("ghs_", Token(token_body(C::Dotted, 20, L::Any))),
        ("ghr_", Token(token_body(C::Word, 20, L::Any))),
        ("github_pat_", Token(token_body(C::Word, 20, L::Any))),
        // Anthropic, and OpenAI with all providers that copied its prefix.
        ("sk-ant-", StandaloneToken(token_body(C::Slug, 16, L::Any))),
        ("sk-", StandaloneToken(token_body(C::Slug, 20, L::Random))),
        // AWS key ids, permanent and temporary.
        ("AKIA", Token(token_body(C::Upper, 16, L::Any))),
        ("ASIA", Token(token_body(C::Upper, 16, L::Any))),
        // Slack.
        ("xoxa-", Token(token_body(C::Slug, 10, L::Any))),
        ("xoxb-", Token(token_body(C::Slug, 10, L::Any))),
        ("xoxp-", Token(token_body(C::Slug, 10, L::Any))),
        ("xoxr-", Token(token_body(C::Slug, 10, L::Any))),
        ("xoxs-", Token(token_body(C::Slug, 10, L::Any))),
        // npm, GitLab, Google, Hugging Face.
        ("npm_", Token(token_body(C::Alphanumeric, 30, L::Any))),
        ("glpat-", Token(token_body(C::Dotted, 20, L::Any))),
        ("AIza", Token(token_body(C::Slug, 30, L::Any))),
        ("hf_", Token(token_body(C::Alphanumeric, 30, L::Any))),
        // Names of credentials in assignments and in keys of JSON, YAML and TOML.
        ("api_key", Assigned),
        ("apiKey", Assigned),
        ("ApiKey", Assigned),
        ("apikey", Assigned),
        ("API_KEY", Assigned),
        ("APIKEY", Assigned),
        ("access_key", Assigned),
        ("accessKey", Assigned),
        ("ACCESS_KEY", Assigned),
        ("secret_key", Assigned),
        ("secretKey", Assigned),
        ("SECRET_KEY", Assigned),
        ("client_secret", Assigned),
        ("clientSecret", Assigned),
        ("CLIENT_SECRET", Assigned),
        ("access_token", Assigned),
        ("accessToken", Assigned),
        ("ACCESS_TOKEN", Assigned),
        ("auth_token", Assigned),
        ("authToken", Assigned),
        ("AUTH_TOKEN", Assigned),
        // Without their first letters, which differ in case.
        ("earer", Bearer),
        ("EARER", Bearer),
        ("uthorization", Header),
        ("UTHORIZATION", Header),
        ("api-key", Header),
        ("Api-Key", Header),
        ("API-Key", Header),
        ("API-KEY", Header),
        ("eyJ", Jwt),
        ("ewog", Jwt),
        ("-----BEGIN ", Pem),
        ("://", Authority),
        (":\\/\\/", Authority),
    ]
};

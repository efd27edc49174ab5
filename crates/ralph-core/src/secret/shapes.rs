//! The shapes of tokens that are recognised without being known.
//!
//! Each starts with a literal that its issuer chose to be recognisable. Some of these occur in
//! ordinary text too (`task-force`, `npm_config_cache`), so each row says what must follow.

use super::escapes::invisible_length;

/// A set of bytes that a secret is made of.
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
    /// What may follow `Bearer`: `A-Za-z0-9._~+/=-`
    Bearer,
    /// A header's value without spaces, and without what surrounds one in source code.
    Header,
}

impl ByteClass {
    /// Tells whether a byte is in the set.
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

    /// Returns how far bytes of the set reach at the start of a text, with colour codes and invisible
    /// characters between them, and whether more text may belong to them.
    pub(super) fn reach(self, text: &[u8]) -> (usize, bool) {
        let mut at = 0;
        loop {
            at += self.run(&text[at..]);
            let Some(unseen) = invisible_length(&text[at..]) else {
                return (at, true);
            };
            let next = text.get(at + unseen).copied();
            if unseen == 0 || !next.is_some_and(|byte| self.contains(byte)) {
                return (at, false);
            }
            at += unseen;
        }
    }

    /// Returns the first bytes of a text that are in the set, up to `most`, without colour codes and
    /// invisible characters between them, and whether more text may add to them.
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
                Some(unseen) => at += unseen,
            }
        }
    }

    /// Returns how many bytes at the start of a text are in the set.
    pub(super) fn run(self, text: &[u8]) -> usize {
        text.iter()
            .position(|byte| !self.contains(*byte))
            .unwrap_or(text.len())
    }
}

/// What tells a token from a word. Each stays true when more bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenHeuristic {
    /// The literal before it is enough.
    Any,
    /// It has a digit and a capital, or four digits: no compound of words has.
    Random,
    /// It has a digit, or is longer than names in source code are.
    DigitOrLong,
    /// It has a digit or a capital.
    DigitOrCapital,
    /// Letters and digits alternate, or it is long and has both cases: no name in source code does.
    Mixed,
}

impl TokenHeuristic {
    /// How long a token without a digit must be.
    const LONG: usize = 32;
    /// How often letters and digits take turns in a token by chance.
    const MIN_TRANSITIONS: usize = 3;
    /// How long a token with few turns must be.
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

    /// Counts the places where a letter follows a digit, or a digit a letter.
    fn count_transitions(token: &[u8]) -> usize {
        let is_turn = |pair: &[u8]| {
            pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic()
                || pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit()
        };
        token.windows(2).filter(|pair| is_turn(pair)).count()
    }
}

/// What must follow a literal.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenBody {
    /// The bytes it is made of.
    pub(super) class: ByteClass,
    /// How many there are at least.
    pub(super) min_length: usize,
    /// What else must be true of them.
    pub(super) heuristic: TokenHeuristic,
}

impl TokenBody {
    /// How many bytes are looked at before the decision is made.
    const WINDOW: usize = 64;

    /// Tells whether a text starts with such a body; `None` when it ends too early to tell.
    pub(super) fn matches_start(self, text: &[u8], is_last: bool) -> Option<bool> {
        let (token, may_grow) = self.class.gather(text, Self::WINDOW);
        if token.len() >= self.min_length && self.heuristic.matches(&token) {
            return Some(true);
        }
        (is_last || !may_grow).then_some(false)
    }
}

/// What to do where a literal is found.
#[derive(Debug, Clone, Copy)]
pub(super) enum SecretShape {
    /// The literal and the body after it are a token.
    Token(TokenBody),
    /// The same, but not inside a word.
    StandaloneToken(TokenBody),
    /// The name of a scheme; the body after some blanks is a token.
    Bearer,
    /// The name of a header, whose value is a credential.
    Header,
    /// The name of a variable or a key; a long random value that is assigned to it is a credential.
    Assigned,
    /// The first digits of a JSON object in base64: a signed token when two dots follow.
    Jwt,
    /// What opens a PEM block.
    Pem,
    /// What stands between a scheme and a user.
    Authority,
}

const fn token_body(class: ByteClass, least: usize, look: TokenHeuristic) -> TokenBody {
    TokenBody {
        class,
        min_length: least,
        heuristic: look,
    }
}

/// The literals, and what each announces.
///
/// The issuers' lengths are longer than the least ones here: a token that was cut is hidden too.
pub(super) const SHAPES: [(&str, SecretShape); 53] = {
    use ByteClass as C;
    use SecretShape::{Assigned, Authority, Bearer, Header, Jwt, Pem, StandaloneToken, Token};
    use TokenHeuristic as L;
    [
        // GitHub. Installation tokens may hold a signed token with its dots and dashes.
        ("ghp_", Token(token_body(C::Word, 20, L::Any))),
        ("gho_", Token(token_body(C::Word, 20, L::Any))),
        ("ghu_", Token(token_body(C::Dotted, 20, L::Any))),
        ("ghs_", Token(token_body(C::Dotted, 20, L::Any))),
        ("ghr_", Token(token_body(C::Word, 20, L::Any))),
        ("github_pat_", Token(token_body(C::Word, 20, L::Any))),
        // Anthropic, and OpenAI with all who copied its prefix.
        ("sk-ant-", StandaloneToken(token_body(C::Slug, 16, L::Any))),
        ("sk-", StandaloneToken(token_body(C::Slug, 20, L::Random))),
        // AWS key ids, lasting and temporary.
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
        // Names that an assignment or a key of JSON, YAML and TOML gives to a credential.
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

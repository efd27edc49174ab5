//! Detects values that are too short or too common to search for.
//!
//! A typical `.env` has `POSTGRES_PASSWORD=postgres`. A search for that value would hide `image:
//! postgres:16` in every prompt and log, and reject every action that mentions the database. Such a
//! value protects nothing, so it is reported instead.

use std::fmt;

use super::needles::MIN_SECRET_BYTES;

/// Why a value is not searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsearchable {
    /// Fewer than [`Redactor::MIN_SECRET_BYTES`](super::Redactor::MIN_SECRET_BYTES) bytes.
    Short,
    /// A word, a number, a placeholder or an address that ordinary text contains as well.
    Common,
}

impl fmt::Display for Unsearchable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "too short to search for",
            Self::Common => "too common to search for",
        })
    }
}

/// The longest number that is not searched for: these are ports, sizes, dates and times.
const MAX_DIGITS: usize = 12;
/// The longest single word that is not searched for.
const MAX_WORD: usize = 16;
/// A value with at most this many distinct bytes is filler, such as `xxxxxxxx`.
const MAX_FILLER_VARIETY: usize = 3;
/// The shortest mixed piece of an address or a path that is considered random.
const MIN_RANDOM: usize = 12;

/// Words of placeholders, sorted. A value that consists only of them is not secret.
const PLACEHOLDER_WORDS: [&str; 96] = [
    "a",
    "abc",
    "access",
    "admin",
    "administrator",
    "an",
    "api",
    "app",
    "auth",
    "bar",
    "baz",
    "change",
    "changeit",
    "changeme",
    "ci",
    "client",
    "database",
    "db",
    "default",
    "demo",
    "dev",
    "develop",
    "development",
    "docker",
    "dummy",
    "empty",
    "enter",
    "env",
    "example",
    "fake",
    "false",
    "foo",
    "for",
    "github",
    "guest",
    "here",
    "insecure",
    "insert",
    "is",
    "it",
    "key",
    "kubernetes",
    "letmein",
    "local",
    "localhost",
    "login",
    "main",
    "master",
    "me",
    "minio",
    "minioadmin",
    "mock",
    "mongo",
    "my",
    "mysql",
    "no",
    "none",
    "not",
    "null",
    "only",
    "openai",
    "p",
    "pass",
    "passw0rd",
    "password",
    "postgres",
    "postgresql",
    "private",
    "prod",
    "production",
    "public",
    "qwerty",
    "rabbitmq",
    "real",
    "redis",
    "replace",
    "root",
    "s3cr3t",
    "sa",
    "sample",
    "secret",
    "secure",
    "some",
    "staging",
    "super",
    "system",
    "temp",
    "test",
    "testing",
    "the",
    "this",
    "todo",
    "token",
    "true",
    "user",
    "your",
];

/// Returns why a value is not searched for, or `None` if it is.
pub(super) fn unsearchable_reason(value: &str) -> Option<Unsearchable> {
    let value = value.trim();
    if value.len() < MIN_SECRET_BYTES {
        return Some(Unsearchable::Short);
    }
    let is_common = is_ordinary_text(value) || is_plain_address(value) || is_plain_path(value);
    is_common.then_some(Unsearchable::Common)
}

fn is_ordinary_text(value: &str) -> bool {
    is_filler(value) || is_number(value) || is_single_word(value) || is_placeholder(value)
}

/// Returns whether a value has very few distinct bytes, or is a run such as `abcdefgh`.
fn is_filler(value: &str) -> bool {
    let mut seen = [false; 256];
    for byte in value.bytes() {
        seen[usize::from(byte)] = true;
    }
    let variety = seen.iter().filter(|is_seen| **is_seen).count();
    let steps_up = |pair: &[u8]| pair[1] == pair[0].wrapping_add(1);
    let steps_down = |pair: &[u8]| pair[0] == pair[1].wrapping_add(1);
    let pairs = || value.as_bytes().windows(2);
    variety <= MAX_FILLER_VARIETY || pairs().all(steps_up) || pairs().all(steps_down)
}

/// Returns whether a value is a short number, a date, a time or a version.
fn is_number(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_part = |byte: u8| byte.is_ascii_digit() || b" .,:-_/+TZ".contains(&byte);
    digits <= MAX_DIGITS && value.bytes().all(is_part)
}

/// Returns whether a value reads like one word: letters of one case with vowels among them.
///
/// Of random twelve-letter strings about one in six has enough vowels and no long run of
/// consonants, but generated passwords usually contain digits, too.
fn is_single_word(value: &str) -> bool {
    let letters = value.as_bytes();
    let rest = &letters[1..];
    let is_one_case = letters.iter().all(u8::is_ascii_lowercase)
        || letters.iter().all(u8::is_ascii_uppercase)
        || letters[0].is_ascii_uppercase() && rest.iter().all(u8::is_ascii_lowercase);
    if !is_one_case || letters.len() > MAX_WORD {
        return false;
    }
    let is_vowel = |letter: &u8| b"aeiouy".contains(&letter.to_ascii_lowercase());
    let vowels = letters.iter().filter(|letter| is_vowel(letter)).count();
    let longest = |of_vowels: bool| {
        letters
            .split(|letter| is_vowel(letter) != of_vowels)
            .map(<[u8]>::len)
            .max()
            .unwrap_or(0)
    };
    5 * vowels >= letters.len() && longest(false) <= 4 && longest(true) <= 3
}

/// Returns whether a value consists of placeholder words, such as `change-me` or `Admin123`.
fn is_placeholder(value: &str) -> bool {
    let is_separator = |c: char| !c.is_ascii_alphanumeric();
    let mut words = value
        .split(is_separator)
        .map(|word| word.trim_matches(|c: char| c.is_ascii_digit()))
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase);
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    digits <= 4 && words.all(|word| is_placeholder_word(&word))
}

/// Returns whether a word is a placeholder word, or two or three of them in a row.
fn is_placeholder_word(word: &str) -> bool {
    let is_known = |word: &str| PLACEHOLDER_WORDS.binary_search(&word).is_ok();
    let is_two = |word: &str| {
        let mut cuts = (1..word.len()).filter(|at| word.is_char_boundary(*at));
        cuts.any(|at| is_known(&word[..at]) && is_known(&word[at..]))
    };
    is_known(word)
        || is_two(word)
        || (1..word.len())
            .filter(|at| word.is_char_boundary(*at))
            .any(|at| is_known(&word[..at]) && is_two(&word[at..]))
}

/// Returns whether a value is an address without a real password and without a random piece such as
/// that of a webhook.
fn is_plain_address(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else {
        return false;
    };
    let is_scheme = !scheme.is_empty()
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let has_password = authority
        .rsplit_once('@')
        .and_then(|(user, _)| user.split_once(':'))
        .is_some_and(|(_, password)| !password.is_empty() && !is_ordinary_text(password));
    is_scheme && !has_password && !has_random_piece(rest)
}

/// Returns whether a value is a path of ordinary names.
fn is_plain_path(value: &str) -> bool {
    let is_path = ["/", "./", "../", "~/"]
        .iter()
        .any(|start| value.starts_with(start));
    is_path && !value.contains(char::is_whitespace) && !has_random_piece(value)
}

/// Returns whether a piece of the text mixes letters and digits in a way that names do not.
fn has_random_piece(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|piece| {
            let digits = piece.bytes().filter(u8::is_ascii_digit).count();
            let letters = piece.len() - digits;
            piece.len() >= MIN_RANDOM && digits >= 2 && letters >= 2
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_sorted() {
        assert!(PLACEHOLDER_WORDS.is_sorted());
    }

    #[test]
    fn ordinary_values_are_not_searched_for() {
        for value in [
            "postgres",
            "POSTGRES",
            "Postgres",
            "password",
            "Password1",
            "password123",
            "changeme",
            "change-me",
            "CHANGE_ME",
            "admin123",
            "minioadmin",
            "mysecretpassword",
            "my-secret-key",
            "dev_password",
            "your-api-key-here",
            "not-a-real-key",
            "supersecret",
            "super-secret",
            "development",
            "administrator",
            "kubernetes",
            "12345678",
            "2024-01-31",
            "1700000000",
            "00000000",
            "xxxxxxxxxxxxxxxx",
            "********",
            "abcdefgh",
            "87654321",
            "http://localhost:8080",
            "https://auth.example.com/oauth/token",
            "postgres://postgres:postgres@localhost:5432/app",
            "redis://localhost:6379/0",
            "/home/user/.ssh/id_rsa",
            "~/.config/service/key.json",
            "./certs/server.pem",
            "  password  ",
        ] {
            assert_eq!(
                unsearchable_reason(value),
                Some(Unsearchable::Common),
                "{value}"
            );
        }
        for value in ["", "1234567", "  hunter2  ", "true"] {
            assert_eq!(
                unsearchable_reason(value),
                Some(Unsearchable::Short),
                "{value}"
            );
        }
    }

    #[test]
    fn real_secrets_are_searched_for() {
        for value in [
            "hunter2hunter2",
            "correct horse battery staple",
            "xkqjzvpwmtbl",
            "c4N4ry!8",
            "S3nt-1nel",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "sk-ant-api03-abc",
            "0123456789abcdef",
            "550e8400-e29b-41d4-a716-446655440000",
            "4929123456781234",
            "p@ss/w rd!",
            "postgres://app:x8K-2mQ9vT@db:5432/app",
            "postgres://app:x8K2m@db:5432/app",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCY",
            "https://hooks.slack.com/services/T01ABC/B02DEF/a1B2c3D4e5F6g7H8",
            "/K7MDENG+bPxRfiCYc4N4ryKEY",
            "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n",
        ] {
            assert_eq!(unsearchable_reason(value), None, "{value}");
        }
    }
}

//! Secrets in spellings that are not listed, and credentials recognised by the words before them.

use std::fmt::Write as _;

use super::Redactor;
use super::tests::{CANARIES, all_canaries, redacted_in_every_way};

/// Maps each character.
fn each(text: &str, write: impl Fn(usize, char) -> String) -> String {
    let mut written = String::new();
    for (index, c) in text.chars().enumerate() {
        written += &write(index, c);
    }
    written
}

/// Maps each byte.
fn bytes(text: &str, write: impl Fn(u8) -> String) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        written += &write(byte);
    }
    written
}

fn percent(text: &str, kept: &str, digits: fn(u8) -> String) -> String {
    bytes(text, |byte| {
        let is_kept = byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte);
        if is_kept {
            char::from(byte).to_string()
        } else {
            digits(byte)
        }
    })
}

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn units(c: char) -> String {
    let mut written = String::new();
    for unit in c.encode_utf16(&mut [0; 2]) {
        write!(written, "\\u{unit:04x}").unwrap();
    }
    written
}

/// Returns a secret with sets and layers of escapes that are not listed.
fn escaped(secret: &str) -> Vec<(&'static str, String)> {
    let upper = |byte: u8| format!("%{byte:02X}");
    let lower = |byte: u8| format!("%{byte:02x}");
    let twice = json(&json(secret));
    let some = each(secret, |index, c| match index % 3 {
        1 if c.is_ascii_alphanumeric() => c.into(),
        _ => units(c),
    });
    vec![
        ("the slash kept", percent(secret, "-_.~/", upper)),
        ("the slash kept, small", percent(secret, "-_.~/", lower)),
        ("a path", percent(secret, "-_.~/:@!$&'()*+,;=", upper)),
        (
            "percent twice",
            percent(secret, "", upper).replace('%', "%25"),
        ),
        ("JSON in JSON in JSON", json(&twice)),
        ("JSON in JSON", twice),
        (
            "slashes in JSON in JSON",
            json(&json(secret).replace('/', "\\/")),
        ),
        ("some characters by number", some),
        ("bytes of C", bytes(secret, |byte| format!("\\x{byte:02x}"))),
        ("octal bytes", bytes(secret, |byte| format!("\\{byte:03o}"))),
        ("XML", each(secret, |_, c| format!("&#{};", u32::from(c)))),
        (
            "XML in XML",
            each(secret, |_, c| format!("&amp;#x{:x};", u32::from(c))),
        ),
    ]
}

/// Returns a secret with invisible text between its characters.
fn interrupted(secret: &str) -> Vec<(&'static str, String)> {
    let between = |every: usize, inserted: &str| {
        each(secret, |index, c| {
            let is_due = index > 0 && index % every == every - 1;
            if is_due {
                format!("{inserted}{c}")
            } else {
                c.into()
            }
        })
    };
    vec![
        ("colour codes", between(5, "\u{1b}[01;31m\u{1b}[K")),
        ("a code after each character", between(1, "\u{1b}[0m")),
        ("colour codes in JSON", json(&between(5, "\u{1b}[0m"))),
        ("links", between(5, "\u{1b}]8;;https://example.com\u{7}")),
        ("links with the other end", between(5, "\u{1b}]8;;\u{1b}\\")),
        ("codes of eight bits", between(5, "\u{9b}1m")),
        ("zero-width spaces", between(5, "\u{200b}")),
        ("joiners and marks", between(5, "\u{200d}\u{2060}\u{feff}")),
        ("soft hyphens", between(5, "\u{ad}")),
        ("directions", between(5, "\u{202e}\u{2066}")),
    ]
}

#[test]
fn unlisted_spellings_of_a_secret_are_redacted_at_every_split() {
    let redactor = all_canaries();
    for (name, value) in CANARIES {
        for (kind, spelling) in [escaped(value), interrupted(value)].concat() {
            let text = format!("token is {spelling} and more\n");
            let redacted = redacted_in_every_way(&redactor, text.as_bytes());
            let shown = String::from_utf8_lossy(&redacted);
            let context = format!("{name}, {kind}: {spelling:?} became {shown:?}");
            assert!(shown.starts_with("token is [REDACTED"), "{context}");
            assert!(shown.ends_with(" and more\n"), "{context}");
            assert!(redactor.find_known(text.as_bytes()).is_some(), "{context}");
            // The remainder is shorter than the shortest piece that is searched for.
            let left = shown.replace("[REDACTED:", "").replace("[REDACTED]", "");
            assert!(
                left.len() < "token is  and more\n".len() + name.len() + 12,
                "{context}"
            );
        }
    }
}

#[test]
fn tokens_with_colour_codes_are_recognised_by_their_shape() {
    let redactor = Redactor::default();
    for (text, expected) in [
        (
            "\u{1b}[32mghp_16C7e42F29\u{1b}[01;31m\u{1b}[K2c6912E7710c\u{1b}[m\u{1b}[K838347Ae\u{1b}[0m ok",
            "\u{1b}[32m[REDACTED]\u{1b}[0m ok",
        ),
        (
            "AKIAIOSF\u{200b}ODNN7EXAMPLE\u{200b} ok",
            "[REDACTED]\u{200b} ok",
        ),
        (
            "Bearer abc.DEF-\u{1b}[1m123_456~x\u{1b}[0m",
            "Bearer [REDACTED]\u{1b}[0m",
        ),
        (
            "A=ghp_16C7e42F292c6912E7710c\0PATH=/bin",
            "A=[REDACTED]\0PATH=/bin",
        ),
    ] {
        let redacted = redacted_in_every_way(&redactor, text.as_bytes());
        assert_eq!(String::from_utf8_lossy(&redacted), expected);
    }
}

#[test]
fn credentials_are_recognised_by_the_words_before_them() {
    let redactor = Redactor::default();
    let value = "x8Kf2mQ9vTz4LpW7";
    for (before, after) in [
        ("Bearer\t", "\n"),
        ("Bearer  \t ", "\n"),
        ("bearer:  ", "\n"),
        ("BEARER: ", " x"),
        ("Bearer%20", "&x"),
        ("'bearer' => '", "'"),
        ("Authorization: Bearer\t ", "\n"),
        ("Authorization:\tBearer  ", "\n"),
        ("{\"api_key\": \"", "\"}"),
        ("{\\\"api_key\\\": \\\"", "\\\"}"),
        ("{'api_key': '", "'}"),
        ("api_key = ", "\n"),
        ("api_key=", "&b=c"),
        ("apiKey: ", ",\n"),
        ("export OPENAI_API_KEY=", "\n"),
        ("AWS_SECRET_ACCESS_KEY=", "\n"),
        ("client_secret := \"", "\"\n"),
        ("\"accessToken\":\"", "\"}"),
        (":api_key => '", "'"),
    ] {
        let text = format!("{before}{value}{after}");
        let redacted = redacted_in_every_way(&redactor, text.as_bytes());
        // A value may contain an ampersand.
        let after = if after == "&b=c" { "" } else { after };
        let expected = format!("{before}[REDACTED]{after}");
        assert_eq!(String::from_utf8_lossy(&redacted), expected);
    }
}

#[test]
fn names_and_placeholders_in_source_code_are_not_credentials() {
    let redactor = Redactor::default();
    for text in [
        "api_key = settings.API_KEY_2024",
        "api_key=\"YOUR_API_KEY_HERE_1\" # sample",
        "\"api_key\": \"test-key-for-unit-tests\"",
        "password = hash_password_with_bcrypt2(form)",
        "secret_key: $SECRET_KEY_BASE_64, access_token: ${{ secrets.TOKEN_1 }}",
        "let accessToken = await getAccessTokenSilently();",
        "the password: see 2024-01-31-report-of-the-team",
        "Bearer: the bearer of this letter; bearer_token = tokens[0]",
        "type Bearer = BearerTokenAuthentication;",
        "fn api_key(&self) -> Option<&str>; API_KEYS: [&str; 2]",
    ] {
        let redacted = redacted_in_every_way(&redactor, text.as_bytes());
        assert_eq!(String::from_utf8_lossy(&redacted), text);
    }
}

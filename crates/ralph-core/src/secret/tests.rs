//! Tests of the redactor's public API.

use super::encode::encodings;
use super::{Redactor, Secret};

/// One secret of each kind that users configure.
pub(super) const CANARIES: [(&str, &str); 12] = [
    ("GITHUB_TOKEN", "ghp_c4N4ryc4N4ryc4N4ryc4N4ryc4N4ryc4N4ry"),
    (
        "GITHUB_APP",
        "ghs_123456_eyJhbGciOiJSUzI1NiJ9.eyJjYW5hcnkiOiJ0cnVlIn0.c4N4ry-c4N4ry_c4N4ry",
    ),
    (
        "ANTHROPIC_API_KEY",
        "sk-ant-api03-c4N4ry-c4N4ry_c4N4ryc4N4ryAA",
    ),
    ("OPENAI_API_KEY", "sk-proj-c4N4ryc4N4ryc4N4ryc4N4ryc4N4ry"),
    ("ZAI_API_KEY", "0123456789abcdefcafe.c4N4ryc4N4ry"),
    (
        "AWS_SECRET_ACCESS_KEY",
        "wJalrXUtnFEMI/K7MDENG+bPxRfiCYc4N4ryKEY",
    ),
    ("PASSWORD", "p@ss \"w'rd\" <&> $100% \\ c4N4ry"),
    ("UNICODE", "schlüssel-🔑-c4N4ry"),
    ("SHORTEST", "c4N4ry!8"),
    (
        "DATABASE_URL",
        "postgres://ralph:c4N4ry@db.internal:5432/ralph?ssl=1",
    ),
    ("HEX", "00c4a4a7ff00c4a4a7ff00c4a4a7ff00"),
    (
        "SSH_KEY",
        "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIGLWc4N4ryc4N4ry/+c4N4ryc4N4ryc4N4ryoAoGCCqGSM49\nAwEHoUQDQgAEc4N4ryc4N4ry==\n-----END EC PRIVATE KEY-----",
    ),
];

fn secret(value: &str) -> Secret {
    Secret::new(value.to_owned())
}

pub(super) fn all_canaries() -> Redactor {
    let secrets = CANARIES.map(|(name, value)| (name.to_owned(), secret(value)));
    Redactor::new(secrets.into())
}

fn in_pieces<'a>(redactor: &Redactor, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut stream, mut out) = (redactor.stream(), Vec::new());
    for piece in pieces {
        stream.push(piece, &mut out);
    }
    stream.finish(&mut out);
    out
}

/// Redacts text whole, byte by byte, and split at every position; all results must be equal.
pub(super) fn redacted_in_every_way(redactor: &Redactor, text: &[u8]) -> Vec<u8> {
    let whole = redactor.redact_bytes(text).into_owned();
    let shown = || String::from_utf8_lossy(text);
    assert_eq!(in_pieces(redactor, text.chunks(1)), whole, "{}", shown());
    for at in 0..=text.len() {
        let halves = in_pieces(redactor, [&text[..at], &text[at..]]);
        assert_eq!(halves, whole, "{} split at {at}", shown());
    }
    whole
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[test]
fn no_spelling_of_a_secret_passes_at_any_split() {
    let redactor = all_canaries();
    for (name, value) in CANARIES {
        for form in encodings(value) {
            let text = [b"token is ", form.as_slice(), b" and more\n"].concat();
            let redacted = redacted_in_every_way(&redactor, &text);
            let shown = String::from_utf8_lossy(&redacted);
            let context = format!("{name}: {} became {shown}", String::from_utf8_lossy(&form));
            assert!(shown.starts_with("token is [REDACTED:"), "{context}");
            assert!(shown.ends_with("] and more\n"), "{context}");
            assert!(!contains(&redacted, &form), "{context}");
            assert!(!shown.contains("c4N4ry"), "{context}");
        }
    }
}

#[test]
fn finds_a_base64_secret_at_every_offset() {
    let redactor = Redactor::new(vec![("KEY".to_owned(), secret("hunter2hunter2"))]);
    for (text, redacted) in [
        // `hunter2hunter2`, alone and with one, two and three bytes before and after it.
        ("aHVudGVyMmh1bnRlcjI=", "[REDACTED:KEY]"),
        ("eGh1bnRlcjJodW50ZXIyeA==", "eG[REDACTED:KEY]eA=="),
        ("eHlodW50ZXIyaHVudGVyMnh5", "eHl[REDACTED:KEY]nh5"),
        ("eHl6aHVudGVyMmh1bnRlcjJ4eXo=", "eHl6[REDACTED:KEY]J4eXo="),
    ] {
        assert_eq!(redactor.redact(text), redacted);
    }
}

#[test]
fn unknown_tokens_are_recognised_by_their_shape() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P";
    let installation = format!("ghs_1234567_{jwt}{}", "a-_9".repeat(110));
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEogIBAAKCAQEAsomething/of+a+key\nAQAB\n-----END RSA PRIVATE KEY-----";
    let redactor = Redactor::default();
    for token in [
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "gho_16C7e42F292c6912E7710c838347Ae178B4a",
        "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
        &installation,
        "github_pat_11ABCDEFG0aaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb01",
        "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789-ABCDEFGHIJ_AA",
        "sk-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX012345",
        "sk-proj-Ab3_Cd4-Ef5Gh6Ij7Kl8Mn9Op0",
        "sk-or-v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdefGHIJKL",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "glpat-abcdefghij0123456789",
        "AIzaSyA-0123456789abcdefghijklmnopqrstu",
        "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
        jwt,
        pem,
    ] {
        for (before, after) in [
            ("", ""),
            ("x = \"", "\";\n"),
            ("a\\n", " b"),
            ("%3D", "&c=d"),
        ] {
            let text = format!("{before}{token}{after}");
            let redacted = redacted_in_every_way(&redactor, text.as_bytes());
            let expected = format!("{before}[REDACTED]{after}");
            assert_eq!(String::from_utf8_lossy(&redacted), expected, "{text}");
        }
    }
    // A JSON web token needs no word boundary before it.
    assert_eq!(redactor.redact(&format!("ghx_{jwt}")), "ghx_[REDACTED]");
}

#[test]
fn redacts_only_the_secret_part_of_a_header_or_address() {
    let redactor = Redactor::default();
    for (text, expected) in [
        (
            "Authorization: Bearer abc.DEF-123_456~x+y/z==\n",
            "Authorization: Bearer [REDACTED]\n",
        ),
        (
            "authorization: token 0123456789abcdef",
            "authorization: token [REDACTED]",
        ),
        (
            "> Proxy-Authorization: Basic dXNlcjpwYXNz\r\n",
            "> Proxy-Authorization: Basic [REDACTED]\r\n",
        ),
        ("AUTHORIZATION=abcdef0123", "AUTHORIZATION=[REDACTED]"),
        (
            r#"{"Authorization": "Bearer abcdef012345"}"#,
            r#"{"Authorization": "Bearer [REDACTED]"}"#,
        ),
        (
            r#"{\"authorization\":\"abcdef012345\"}"#,
            r#"{\"authorization\":\"[REDACTED]\"}"#,
        ),
        (
            "curl -H 'x-api-key: 0123456789abcdef' x",
            "curl -H 'x-api-key: [REDACTED]' x",
        ),
        ("X-Api-Key: a1b2c3d4", "X-Api-Key: [REDACTED]"),
        (
            "sent bearer mF_9.B5f-4.1JqM today",
            "sent bearer [REDACTED] today",
        ),
        (
            "https://user:pass@example.com/a?b",
            "https://[REDACTED]@example.com/a?b",
        ),
        (
            "https://x-access-token:abc@github.com/a/b.git",
            "https://[REDACTED]@github.com/a/b.git",
        ),
        (
            "postgres://u:p@ss:w@rd@db:5432/x",
            "postgres://[REDACTED]@db:5432/x",
        ),
        (
            r"https:\/\/user:pass@example.com\/",
            r"https:\/\/[REDACTED]@example.com\/",
        ),
    ] {
        let redacted = redacted_in_every_way(&redactor, text.as_bytes());
        assert_eq!(String::from_utf8_lossy(&redacted), expected);
    }
}

#[test]
fn harmless_text_is_unchanged() {
    let redactor = all_canaries();
    for text in [
        "fn main() { let task = risk-force; println!(\"{}\", sk); }",
        "use sklearn; // sk-learn-compatible-estimators-and-transformers",
        "a task-force-of-twenty-people-2024 is a desk-bound-organisation-ABC123XYZ",
        ".sk-fading-circle-container-12 { animation: sk-circle-fade-delay 1.2s }",
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nAuthor: A <a@b.example>\n",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  file.txt",
        "550e8400-e29b-41d4-a716-446655440000",
        "\"integrity\": \"sha512-DLdMjJ0qHqzUSsdv6kOzFJhW3wZw0h3oKqzO0gQOTmM2mFzk3Yq1DvhOHW3M9HqRSA==\"",
        "\"resolved\": \"git+ssh://git@github.com/owner/repo.git#0123456789abcdef\"",
        "https://example.com:8443/path?x=1&mail=a@b.example#top ssh://git@host/x",
        "see http://localhost:8080, or mail user:name@host.example",
        "https://${USER}:${TOKEN}@github.com and https://user:$TOKEN@github.com",
        "npm_config_registry=x npm_package_name=ralph npm_lifecycle_event=test",
        "hf_hub_download(repo_id=\"a/b\") ghp_ ghs_short github_pat_ AIza AKIA sk- eyJ",
        "headers: { Authorization: `Bearer ${token}` }, x-api-key: apiKey",
        ".header(\"Authorization\", format!(\"Bearer {}\", token1))",
        "Bearer authentication is required; Authorization: see RFC 6750",
        "//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkq\n-----END CERTIFICATE-----\n",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n",
        "if text.contains(\"-----BEGIN RSA PRIVATE KEY-----\") {\n    return Err(AuthorizationFailure);\n}",
        "const BEGIN: &str = \"-----BEGIN PRIVATE KEY-----\";\nconst END: &str = \"-----END PRIVATE KEY-----\";",
        "out.push_str(\"-----BEGIN PRIVATE KEY-----\\n\");",
        "Authorization: Bearer [REDACTED:GITHUB_TOKEN] https://[REDACTED:X]@host/ u://a:[REDACTED]@b",
        "[REDACTED] [REDACTED:PASSWORD] x-api-key: [REDACTED]",
        "grüße, 你好, \u{1F600}\n",
        "",
    ] {
        let redacted = redacted_in_every_way(&redactor, text.as_bytes());
        assert_eq!(String::from_utf8_lossy(&redacted), text);
    }
}

#[test]
fn redacting_twice_changes_nothing() {
    let redactor = all_canaries();
    for (_, value) in CANARIES {
        let text =
            format!("Authorization: Bearer {value} https://{value}@h u://a:{value}@b -- {value}");
        let once = redactor.redact(&text).into_owned();
        assert_eq!(redactor.redact(&once), once);
    }
}

#[test]
fn overlapping_secrets_are_redacted_completely() {
    let secrets = [
        ("A", "abcdefgh12345678"),
        ("B", "12345678ijklmnop"),
        ("C", "abcdefgh1234"),
    ];
    let secrets = secrets.map(|(name, value)| (name.to_owned(), secret(value)));
    let redactor = Redactor::new(secrets.into());
    for (text, expected) in [
        ("-abcdefgh12345678ijklmnop-", "-[REDACTED:A]-"),
        ("-abcdefgh1234567-", "-[REDACTED:C]567-"),
        (
            "-abcdefgh12345678abcdefgh12345678-",
            "-[REDACTED:A][REDACTED:A]-",
        ),
        // The known name is shown even if a shape starts earlier.
        ("Bearer 0abcdefgh12345678ijklmnop!", "Bearer [REDACTED:A]!"),
        ("https://u:abcdefgh12345678@h/", "https://[REDACTED:A]@h/"),
    ] {
        let redacted = redacted_in_every_way(&redactor, text.as_bytes());
        assert_eq!(String::from_utf8_lossy(&redacted), expected);
    }
}

#[test]
fn a_key_is_redacted_up_to_its_end_or_to_the_end_of_the_text() {
    let redactor = Redactor::default();
    let lines = "MIIEogIBAAKCAQEAsomething/of+a+key0123456789ABCDEFGHIJKLMNOPQRST\n".repeat(400);
    let begin = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
    let end = "-----END OPENSSH PRIVATE KEY-----";
    for (text, expected) in [
        (format!("a {begin}{lines}{end}\nb"), "a [REDACTED]\nb"),
        (format!("a {begin}{lines}"), "a [REDACTED]"),
        (format!("a {begin}{lines}-----END "), "a [REDACTED]"),
        // The dashes that close one block open the next.
        (
            format!("a {begin}{lines}-----END {begin}{lines}{end} b"),
            "a [REDACTED] b",
        ),
        (
            format!(
                "a {begin}{}{end} b",
                lines.replace('\n', "\n2026-01-01 12:00 app: ")
            ),
            "a [REDACTED] b",
        ),
    ] {
        assert_eq!(redactor.redact(&text), expected);
        for size in [1, 7, 4096] {
            let pieces = in_pieces(&redactor, text.as_bytes().chunks(size));
            assert_eq!(String::from_utf8_lossy(&pieces), expected);
        }
    }
}

#[test]
fn an_endless_token_is_not_buffered() {
    let redactor = Redactor::default();
    let (mut stream, mut out) = (redactor.stream(), Vec::new());
    stream.push(b"a ghp_", &mut out);
    for _ in 0..10_000 {
        stream.push(&[b'x'; 100], &mut out);
    }
    assert_eq!(out, b"a ");
    stream.push(b" b\n", &mut out);
    assert_eq!(out, b"a [REDACTED] b\n");
}

#[test]
fn text_is_delayed_only_if_a_secret_may_have_started() {
    let redactor = all_canaries();
    for (text, shown) in [
        ("hello\n", "hello\n"),
        ("hello, m", "hello, m"),
        (
            "Listening on http://localhost:8080\n",
            "Listening on http://localhost:8080\n",
        ),
        ("50% [=====>   ] 3/6\r", "50% [=====>   ] 3/6\r"),
        ("a ghp_c4N4", "a "),
        ("a sk-learn\n", "a sk-learn\n"),
        ("Password: ", "Password: "),
        ("eyJhbGciOiJIUzI1NiJ9\n", "eyJhbGciOiJIUzI1NiJ9\n"),
        ("-----BEGIN EC PRIVATE KEY-----\n", ""),
        (
            "-----BEGIN CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\n",
        ),
    ] {
        let (mut stream, mut out) = (redactor.stream(), Vec::new());
        stream.push(text.as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), shown);
    }
}

#[test]
fn bytes_that_are_not_utf8_pass() {
    let redactor = all_canaries();
    let every: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    assert_eq!(redacted_in_every_way(&redactor, &every), every);
    let around = [b"\xff\xfe\0".as_slice(), b"c4N4ry!8", b"\xc3\x28\0"].concat();
    assert_eq!(
        redacted_in_every_way(&redactor, &around),
        b"\xff\xfe\0[REDACTED:SHORTEST]\xc3\x28\0"
    );
}

/// A deterministic pseudo-random sequence.
struct SecretTestRng(u32);

impl SecretTestRng {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) as usize % limit
    }
}

/// The starts of tokens and escapes.
const LITERALS: [&str; 34] = [
    "\\",
    "\\\\u00",
    "\\ud83d",
    "n",
    "%",
    "%25",
    "41",
    "&",
    "amp;",
    "#x6",
    "\u{1b}[",
    "31m",
    "\u{1b}]8;;",
    "\u{7}",
    "\u{200b}",
    "\u{9b}",
    "api_key = \"",
    "bearer:\t",
    "Authorization: ",
    "Bearer ",
    "://",
    "eyJ",
    "sk-",
    "ghp_",
    "npm_",
    "AKIA",
    ".",
    "@",
    ":",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "\n",
    " ",
    "Az09",
];

#[test]
fn the_result_does_not_depend_on_the_chunks() {
    let redactor = all_canaries();
    let forms: Vec<_> = CANARIES
        .iter()
        .flat_map(|(_, value)| encodings(value))
        .collect();
    let mut rng = SecretTestRng(1);
    for _ in 0..1500 {
        let mut text = Vec::new();
        for _ in 0..rng.below(24) {
            let form = &forms[rng.below(forms.len())];
            let (first, end) = (rng.below(form.len()), 1 + rng.below(form.len()));
            match rng.below(4) {
                0 => text.extend_from_slice(form),
                1 => text.extend_from_slice(&form[first.min(end)..end]),
                _ => text.extend_from_slice(LITERALS[rng.below(LITERALS.len())].as_bytes()),
            }
        }
        let whole = redactor.redact_bytes(&text).into_owned();
        let (mut stream, mut out, mut rest) = (redactor.stream(), Vec::new(), text.as_slice());
        while !rest.is_empty() {
            let size = rng.below(1 + rest.len().min(40));
            stream.push(&rest[..size], &mut out);
            rest = &rest[size..];
        }
        stream.finish(&mut out);
        assert_eq!(out, whole, "{}", String::from_utf8_lossy(&text));
        for form in forms.iter().step_by(7) {
            assert!(
                !contains(&whole, form),
                "{}",
                String::from_utf8_lossy(&text)
            );
        }
    }
}

#[test]
fn repeated_literals_take_linear_time() {
    let redactor = Redactor::default();
    for (literal, redacted) in [
        ("eyJ", None),
        ("sk-", None),
        ("-----BEGIN PRIVATE KEY-----", None),
        (
            "ghp_aaaaaaaaaaaaaaaaaaaaaaaa",
            Some("[REDACTED]".to_owned()),
        ),
        ("://a:b@", Some("://[REDACTED]@".repeat(40_000))),
    ] {
        // Scanning the whole run for each literal would take minutes.
        let text = literal.repeat(40_000);
        assert_eq!(redactor.redact(&text), redacted.unwrap_or(text.clone()));
    }
}

#[test]
fn detects_only_the_requested_shapes() {
    use super::TokenShapes;
    let redactor = Redactor::new(vec![("KEY".into(), Secret::new("correct horse".into()))]);
    let token = format!("ghp_{}", "a1".repeat(18));
    let text = format!("correct horse {token} postgres://app:postgres@localhost/db");
    for (shapes, expected) in [
        (
            TokenShapes::None,
            format!("[REDACTED:KEY] {token} postgres://app:postgres@localhost/db"),
        ),
        (
            TokenShapes::Issued,
            "[REDACTED:KEY] [REDACTED] postgres://app:postgres@localhost/db".into(),
        ),
        (
            TokenShapes::All,
            "[REDACTED:KEY] [REDACTED] postgres://[REDACTED]@localhost/db".into(),
        ),
    ] {
        assert_eq!(
            redactor.with_shapes(shapes).redact(&text),
            expected,
            "{shapes:?}"
        );
    }
}

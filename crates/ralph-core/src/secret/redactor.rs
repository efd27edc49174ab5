//! The redactor, built once and shared by all sinks.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::fold::FoldedText;
use super::needles::{MIN_SECRET_BYTES, Needles};
use super::patterns::ScanText;
use super::searchability::{self, Unsearchable};
use super::{RedactStream, Secret};

/// Replaces secrets with placeholders: `[REDACTED:name]` for a known secret, `[REDACTED]` for a
/// token that was recognised by its shape. Clones share their state.
#[derive(Clone)]
pub struct Redactor {
    inner: Arc<RedactorInner>,
    shapes: TokenShapes,
}

/// The unknown tokens to detect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenShapes {
    /// None: only known secrets are found.
    None,
    /// Tokens with their issuer's prefix, and private keys. They rarely occur in code by accident.
    Issued,
    /// Also text in the usual position of a password or token: `user:password@`, `Bearer …`.
    All,
}

struct RedactorInner {
    /// Replaced as a whole when a secret is learned, so that readers only copy a pointer.
    secrets: RwLock<Arc<KnownSecrets>>,
    known: AtomicU64,
    by_shape: AtomicU64,
}

/// The secrets that a redactor knows. The index of a secret never changes: learned ones are appended.
pub(super) struct KnownSecrets {
    secrets: Vec<(String, Arc<Secret>)>,
    placeholders: Vec<String>,
    needles: Needles,
    unsearchable: Vec<(String, Unsearchable)>,
}

impl KnownSecrets {
    fn new(secrets: Vec<(String, Arc<Secret>)>) -> Self {
        let reason = |secret: &Secret| searchability::unsearchable_reason(secret.expose());
        let placeholders = secrets
            .iter()
            .map(|(name, _)| format!("[REDACTED:{}]", sanitize_name(name)));
        let unsearchable = secrets
            .iter()
            .filter_map(|(name, secret)| Some((name.clone(), reason(secret)?)));
        Self {
            placeholders: placeholders.collect(),
            unsearchable: unsearchable.collect(),
            needles: Needles::new(secrets.iter().map(|(_, secret)| &**secret)),
            secrets,
        }
    }

    pub(super) fn needles(&self) -> &Needles {
        &self.needles
    }

    pub(super) fn placeholder(&self, secret: Option<usize>) -> &str {
        secret.map_or("[REDACTED]", |index| &self.placeholders[index])
    }

    fn name(&self, index: usize) -> String {
        self.secrets[index].0.clone()
    }
}

/// The number of redactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedactionCounts {
    /// Redactions of known secrets.
    pub known: u64,
    /// Redactions of tokens recognised by their shape.
    pub by_shape: u64,
}

impl Redactor {
    /// The shortest secret that is searched for, in bytes.
    pub const MIN_SECRET_BYTES: usize = MIN_SECRET_BYTES;
    /// The longest name in a placeholder, in characters.
    const MAX_NAME_CHARS: usize = 64;

    /// Creates a redactor for known secrets, each with the name for its placeholder.
    ///
    /// Without known secrets it still detects tokens by their shape. Whitespace around a secret is
    /// ignored. Secrets that are too short or too common are skipped; [`Redactor::unsearchable`]
    /// lists them.
    pub fn new(secrets: Vec<(String, Secret)>) -> Self {
        let secrets = secrets
            .into_iter()
            .map(|(name, secret)| (name, Arc::new(secret)))
            .collect();
        Self {
            inner: Arc::new(RedactorInner {
                secrets: RwLock::new(Arc::new(KnownSecrets::new(secrets))),
                known: AtomicU64::new(0),
                by_shape: AtomicU64::new(0),
            }),
            shapes: TokenShapes::All,
        }
    }

    /// Adds a secret that was not known when the redactor was created. Every clone redacts it from
    /// now on, in streams from the next chunk on.
    ///
    /// A value that is known already keeps its name.
    pub fn learn(&self, name: &str, secret: Secret) {
        let current = &self.inner.secrets;
        let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
        let is_known = |(_, known): &(String, Arc<Secret>)| known.expose() == secret.expose();
        if current.secrets.iter().any(is_known) {
            return;
        }
        let mut secrets = current.secrets.clone();
        secrets.push((name.to_owned(), Arc::new(secret)));
        *current = Arc::new(KnownSecrets::new(secrets));
    }

    pub(super) fn known_secrets(&self) -> Arc<KnownSecrets> {
        let current = &self.inner.secrets;
        let current = current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// Returns a redactor for the same known secrets that searches for these shapes.
    #[must_use]
    pub fn with_shapes(&self, shapes: TokenShapes) -> Self {
        Self {
            inner: self.inner.clone(),
            shapes,
        }
    }

    /// Returns the text without its secrets.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Secrets start and end between characters, so this replaces nothing else.
            Cow::Owned(bytes) => Cow::Owned(
                String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            ),
        }
    }

    /// Returns bytes without their secrets; the input need not be UTF-8.
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut stream = self.stream();
        let mut redacted = Vec::with_capacity(bytes.len());
        stream.push(bytes, &mut redacted);
        if stream.finish(&mut redacted) == RedactionCounts::default() {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned(redacted)
        }
    }

    /// Starts redacting text that arrives in chunks.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(self.clone())
    }

    /// Returns the number of redactions so far, in all texts and finished streams.
    pub fn hits(&self) -> RedactionCounts {
        RedactionCounts {
            known: self.inner.known.load(Ordering::Relaxed),
            by_shape: self.inner.by_shape.load(Ordering::Relaxed),
        }
    }

    /// Returns the secrets that are not searched for, by name, with the reason.
    pub fn unsearchable(&self) -> Vec<(String, Unsearchable)> {
        self.known_secrets().unsearchable.clone()
    }

    /// Returns the name of the first known secret in `text`, in any spelling.
    ///
    /// Text that will be executed is checked with this and never rewritten.
    pub fn find_known(&self, text: &[u8]) -> Option<String> {
        let mut spans = Vec::new();
        let text = ScanText {
            bytes: text,
            is_last: true,
        };
        let folded = FoldedText::new(text.bytes, 0, true);
        let secrets = self.known_secrets();
        secrets.needles.scan(text, 0, &folded, &mut spans);
        let first = spans.iter().min_by_key(|span| span.from)?;
        Some(secrets.name(first.secret?))
    }

    /// Returns the name of a known secret if its placeholder occurs in `text`.
    ///
    /// Such a text is a copy of something that was redacted, not the original.
    pub fn find_placeholder(&self, text: &str) -> Option<String> {
        if !text.contains("[REDACTED:") {
            return None;
        }
        let shown = |placeholder: &String| text.contains(placeholder.as_str());
        let secrets = self.known_secrets();
        let index = secrets.placeholders.iter().position(shown)?;
        Some(secrets.name(index))
    }

    pub(super) fn shapes(&self) -> TokenShapes {
        self.shapes
    }

    pub(super) fn count(&self, hits: RedactionCounts) {
        self.inner.known.fetch_add(hits.known, Ordering::Relaxed);
        self.inner
            .by_shape
            .fetch_add(hits.by_shape, Ordering::Relaxed);
    }
}

impl Default for Redactor {
    /// Returns a redactor without known secrets, which detects tokens by their shape.
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("placeholders", &self.known_secrets().placeholders)
            .finish_non_exhaustive()
    }
}

/// Replaces characters that could break a log line or end the placeholder.
fn sanitize_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .take(Redactor::MAX_NAME_CHARS)
        .map(|c| {
            let is_plain = c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            if is_plain { c } else { '_' }
        })
        .collect();
    if plain.is_empty() {
        "secret".to_owned()
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_shows_a_harmless_name() {
        for (name, shown) in [
            ("GITHUB_TOKEN", "GITHUB_TOKEN"),
            ("my token]\n", "my_token__"),
            ("", "secret"),
            ("schlüssel.v1-a", "schl_ssel.v1-a"),
        ] {
            assert_eq!(sanitize_name(name), shown);
        }
        assert_eq!(sanitize_name(&"x".repeat(1000)).len(), 64);
    }

    #[test]
    fn debug_output_shows_names_and_no_values() {
        let secret = Secret::new("correct horse".to_owned());
        let redactor = Redactor::new(vec![("PASS".to_owned(), secret)]);
        assert_eq!(
            format!("{redactor:?}"),
            "Redactor { placeholders: [\"[REDACTED:PASS]\"], .. }"
        );
    }

    fn redactor(secrets: &[(&str, &str)]) -> Redactor {
        let secret = |(name, value): &(&str, &str)| {
            let value = (*value).to_owned();
            ((*name).to_owned(), Secret::new(value))
        };
        Redactor::new(secrets.iter().map(secret).collect())
    }

    #[test]
    fn reports_secrets_that_are_not_searched_for() {
        let redactor = redactor(&[
            ("SHORT", "1234567"),
            ("BLANK", "   1234567   "),
            ("POSTGRES_PASSWORD", "postgres"),
            ("LONG", "s3nt1nel"),
        ]);
        let reported = [
            ("SHORT".to_owned(), Unsearchable::Short),
            ("BLANK".to_owned(), Unsearchable::Short),
            ("POSTGRES_PASSWORD".to_owned(), Unsearchable::Common),
        ];
        assert_eq!(redactor.unsearchable(), reported);
        assert_eq!(
            redactor.redact("1234567 image: postgres:16 s3nt1nel"),
            "1234567 image: postgres:16 [REDACTED:LONG]"
        );
    }

    #[test]
    fn known_secrets_are_identified_by_name() {
        let redactor = redactor(&[("A", "correct horse"), ("my token", "hunter2hunter2")]);
        for (text, name) in [
            ("nothing", None),
            ("x hunter2hunter2, correct horse", Some("my token")),
            ("68756e7465723268756e74657232", Some("my token")),
            ("AKIAIOSFODNN7EXAMPLE", None),
        ] {
            assert_eq!(
                redactor.find_known(text.as_bytes()).as_deref(),
                name,
                "{text}"
            );
        }
        for (text, name) in [
            ("a [REDACTED] value", None),
            ("a [REDACTED:OTHER] value", None),
            ("a [REDACTED:my_token] value", Some("my token")),
        ] {
            assert_eq!(redactor.find_placeholder(text).as_deref(), name, "{text}");
        }
    }

    #[test]
    fn counts_redactions() {
        let redactor = Redactor::new(vec![(
            "PASS".to_owned(),
            Secret::new("correct horse".to_owned()),
        )]);
        let clone = redactor.clone();
        redactor.redact("correct horse, correct horse, AKIAIOSFODNN7EXAMPLE");
        redactor.redact("nothing");
        let hits = RedactionCounts {
            known: 2,
            by_shape: 1,
        };
        assert_eq!(clone.hits(), hits);
    }

    #[test]
    fn every_clone_replaces_a_learned_secret() {
        let redactor = redactor(&[("PASS", "correct horse")]);
        let clone = redactor.with_shapes(TokenShapes::Issued);
        let text = "correct horse and minted-9f31c2";
        assert_eq!(clone.redact(text), "[REDACTED:PASS] and minted-9f31c2");
        redactor.learn("GATE", Secret::new("minted-9f31c2".to_owned()));
        assert_eq!(clone.redact(text), "[REDACTED:PASS] and [REDACTED:GATE]");
        assert_eq!(clone.find_known(b"minted-9f31c2").as_deref(), Some("GATE"));
        assert_eq!(
            clone.find_placeholder("[REDACTED:GATE]").as_deref(),
            Some("GATE")
        );
    }

    #[test]
    fn a_value_that_is_known_keeps_its_name() {
        let redactor = redactor(&[("PASS", "correct horse")]);
        redactor.learn("OTHER", Secret::new("correct horse".to_owned()));
        assert_eq!(redactor.redact("correct horse"), "[REDACTED:PASS]");
        redactor.learn("SHORT", Secret::new("1234".to_owned()));
        assert_eq!(
            redactor.unsearchable(),
            [("SHORT".to_owned(), Unsearchable::Short)]
        );
    }

    #[test]
    fn an_open_stream_replaces_a_secret_that_is_learned_meanwhile() {
        let redactor = redactor(&[("PASS", "correct horse")]);
        let (mut stream, mut out) = (redactor.stream(), Vec::new());
        stream.push(b"before correct ho", &mut out);
        redactor.learn("GATE", Secret::new("minted-9f31c2".to_owned()));
        stream.push(b"rse, minted-", &mut out);
        stream.push(b"9f31c2 after", &mut out);
        stream.finish(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "before [REDACTED:PASS], [REDACTED:GATE] after"
        );
    }

    #[test]
    fn threads_can_read_while_another_learns() {
        let redactor = redactor(&[("PASS", "correct horse")]);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let redactor = &redactor;
                scope.spawn(move || {
                    let minted = format!("minted-secret-{number}");
                    redactor.learn(&format!("T{number}"), Secret::new(minted.clone()));
                    assert_eq!(redactor.redact(&minted), format!("[REDACTED:T{number}]"));
                });
                scope.spawn(|| {
                    assert_eq!(redactor.redact("correct horse"), "[REDACTED:PASS]");
                });
            }
        });
    }
}

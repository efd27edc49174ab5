//! I5: the run's files contain nothing with the format of a credential and no credential of the
//! environment. Commits are checked before they are imported and pushed, so the repository is
//! skipped here.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::evidence::Evidence;
use super::known_secrets::{AuditSecrets, strip_escape_sequences};
use super::report::{AuditOutcome, Findings};

const CHUNK_BYTES: usize = 1 << 16;
/// The size of a block that is searched for known credentials, in bytes.
const BLOCK_BYTES: u64 = 16 << 20;
/// The overlap of two blocks, in bytes.
const OVERLAP: usize = 64 << 10;
/// The number of bytes needed to recognise a credential at a position.
const WINDOW: usize = 256;

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let mut findings = Findings::default();
    scan_dir(evidence, evidence.run_dir, &mut findings);
    AuditOutcome::Checked(findings)
}

fn scan_dir(evidence: &Evidence<'_>, dir: &Path, findings: &mut Findings) {
    let root = evidence.run_dir;
    let shown = |path: &Path| {
        let inner = path.strip_prefix(root).unwrap_or(path);
        inner.display().to_string()
    };
    let entries = match fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) => entries,
        Err(error) => {
            return findings.fail(format!("`{}` cannot be read: {error}", shown(dir)));
        }
    };
    for entry in entries {
        let path = entry.path();
        if path == root.join("repo.git") {
            continue;
        }
        // Symbolic links are not followed, pipes and devices not opened.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => scan_dir(evidence, &path, findings),
            Ok(kind) if kind.is_file() => match scan_file(&path, &evidence.known_secrets) {
                Ok(found) => {
                    for what in found {
                        findings.fail(format!("{} contains {what}", shown(&path)));
                    }
                }
                // A live run may have moved the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => findings.fail(format!("{} cannot be read: {error}", shown(&path))),
            },
            Ok(_) | Err(_) => {}
        }
    }
}

/// Returns the credentials in a file, each with its kind and position; never their text.
fn scan_file(path: &Path, known: &AuditSecrets) -> io::Result<Vec<String>> {
    let hits = scan(File::open(path)?)?;
    let mut found: Vec<String> = hits
        .iter()
        .map(|(position, kind)| format!("{kind} at byte {position}"))
        .collect();
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    loop {
        let kept = bytes.len();
        (&mut file).take(BLOCK_BYTES).read_to_end(&mut bytes)?;
        if bytes.len() == kept {
            return Ok(found);
        }
        if let Some(name) = known.find(&bytes) {
            found.push(format!("the value of `{name}`"));
            return Ok(found);
        }
        let plain = strip_escape_sequences(&bytes);
        if hits.is_empty() && plain.len() != bytes.len() {
            let hidden = scan(plain.as_slice())?;
            let hidden = hidden
                .iter()
                .map(|(_, kind)| format!("{kind} with colour codes in it"));
            found.extend(hidden);
        }
        // The end is searched again together with the next block.
        bytes.drain(..bytes.len().saturating_sub(OVERLAP));
    }
}

/// Returns the positions and kinds of credentials, but never their text.
fn scan(mut source: impl Read) -> io::Result<Vec<(usize, &'static str)>> {
    let mut hits = Vec::new();
    let mut bytes: Vec<u8> = Vec::new();
    // The number of dropped bytes, and of retained bytes that were already searched.
    let (mut dropped, mut seen) = (0, 0);
    loop {
        let before = bytes.len();
        (&mut source)
            .take(CHUNK_BYTES as u64)
            .read_to_end(&mut bytes)?;
        let at_end = bytes.len() == before;
        let end = if at_end {
            bytes.len()
        } else {
            bytes.len().saturating_sub(WINDOW)
        };
        for position in seen..end.max(seen) {
            if let Some(kind) = match_credential(&bytes, position) {
                hits.push((dropped + position, kind));
            }
        }
        if at_end {
            return Ok(hits);
        }
        seen = end.max(seen);
        // One earlier byte is retained, because it can be part of the same word.
        let cut = seen.saturating_sub(1);
        bytes.drain(..cut);
        dropped += cut;
        seen -= cut;
    }
}

/// A prefix, the permitted characters after it, their minimum number, and the name for messages.
type TokenPattern = (&'static [u8], fn(u8) -> bool, usize, &'static str);

const TOKEN_PATTERNS: [TokenPattern; 8] = [
    (b"ghp_", is_alphanumeric, 36, "a GitHub token"),
    (b"gho_", is_alphanumeric, 36, "a GitHub token"),
    (b"ghu_", is_dotted, 36, "a GitHub token"),
    (b"ghs_", is_dotted, 36, "a GitHub token"),
    (b"ghr_", is_alphanumeric, 36, "a GitHub token"),
    (b"github_pat_", is_word, 40, "a GitHub token"),
    (b"sk-ant-", is_slug, 24, "an Anthropic key"),
    (b"AKIA", is_upper, 16, "an AWS key id"),
];

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_slug(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn is_dotted(byte: u8) -> bool {
    is_slug(byte) || byte == b'.'
}

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn match_credential(bytes: &[u8], position: usize) -> Option<&'static str> {
    let rest = &bytes[position..];
    match rest.first()? {
        b'g' | b's' => match_token(bytes, position),
        b'a' | b'A' => match_token(bytes, position).or_else(|| match_assigned_key(rest)),
        b'b' | b'B' => match_bearer(rest),
        b'-' if is_private_key(rest) => Some("a private key"),
        _ => None,
    }
}

fn match_token(bytes: &[u8], position: usize) -> Option<&'static str> {
    let rest = &bytes[position..];
    TOKEN_PATTERNS
        .into_iter()
        .find_map(|(prefix, follows, least, kind)| {
            let body = rest.strip_prefix(prefix)?;
            let length = body.iter().take_while(|byte| follows(**byte)).count();
            // A key id has a fixed length; longer words are not key ids.
            let whole = if prefix == b"AKIA" {
                let starts_word = position == 0 || !is_alphanumeric(bytes[position - 1]);
                let next = body.get(length).copied().unwrap_or(b' ');
                length == least && starts_word && !is_alphanumeric(next)
            } else {
                length >= least
            };
            whole.then_some(kind)
        })
}

/// Finds a random value after `Bearer` and up to eight blanks or colons.
fn match_bearer(rest: &[u8]) -> Option<&'static str> {
    let name = rest.get(..6)?;
    let value = name.eq_ignore_ascii_case(b"bearer").then(|| &rest[6..])?;
    let gap = value
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b':'))
        .count();
    let is_match = (1..=8).contains(&gap) && is_random(&value[gap..]);
    is_match.then_some("a bearer token")
}

/// Finds a random value that is assigned to the name of an API key.
fn match_assigned_key(rest: &[u8]) -> Option<&'static str> {
    let names = [&b"api_key"[..], b"apiKey", b"API_KEY"];
    let value = names.into_iter().find_map(|name| rest.strip_prefix(name))?;
    let is_between = |byte: &&u8| matches!(byte, b' ' | b'"' | b'\'' | b'\\' | b':' | b'=');
    let between = value.iter().take_while(is_between).count();
    let signs = value[..between].iter();
    let signs = signs.filter(|byte| matches!(byte, b':' | b'=')).count();
    let is_match = signs == 1 && between <= 8 && is_random(&value[between..]);
    is_match.then_some("an assigned key")
}

/// Returns whether a text starts with a key-like mix of letters and digits.
fn is_random(text: &[u8]) -> bool {
    let length = text.iter().take_while(|byte| is_slug(**byte)).count();
    let changes = text[..length]
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
        .count();
    length >= 20 && changes >= 5
}

/// Returns whether a private key starts here: its header, then a line of its body.
fn is_private_key(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(b"-----BEGIN ") else {
        return false;
    };
    let kind = rest
        .iter()
        .take_while(|byte| is_upper(**byte) || **byte == b' ')
        .count();
    let (kind, rest) = rest.split_at(kind);
    let (true, Some(body)) = (kind.ends_with(b"PRIVATE KEY"), rest.strip_prefix(b"-----")) else {
        return false;
    };
    // In JSON, the line ending is escaped.
    let gap = |byte: &u8| matches!(byte, b'\r' | b'\n' | b'\\' | b'n' | b'r' | b' ' | b'\t');
    let body = &body[body.iter().take_while(|byte| gap(byte)).count()..];
    let base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    body.iter().take_while(base64).count() >= 24
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        scan(text.as_bytes()).unwrap()
    }

    // The samples are composed here, so that no scanner reports this file as a leak.
    fn samples() -> Vec<(String, &'static str)> {
        let heading = format!("-----BEGIN {}PRIVATE KEY-----", "RSA ");
        vec![
            (format!("ghp_{}", "a1".repeat(18)), "a GitHub token"),
            (format!("ghs_12_{}", "a-.".repeat(12)), "a GitHub token"),
            (format!("github_pat_{}", "A_".repeat(41)), "a GitHub token"),
            (
                format!("sk-ant-api03-{}", "x".repeat(24)),
                "an Anthropic key",
            ),
            (format!("AKIA{}", "Q7".repeat(8)), "an AWS key id"),
            (
                format!("{heading}\nMIIE{}", "o".repeat(30)),
                "a private key",
            ),
            (
                format!("{heading}\\nMIIE{}", "o".repeat(30)),
                "a private key",
            ),
        ]
    }

    #[test]
    fn a_credential_is_found_wherever_a_chunk_ends() {
        for (sample, kind) in samples() {
            for position in [
                0,
                1,
                CHUNK_BYTES - 300,
                CHUNK_BYTES - 20,
                CHUNK_BYTES - 1,
                CHUNK_BYTES,
                2 * CHUNK_BYTES - 256,
            ] {
                let text = format!("{}{sample} and more", " ".repeat(position));
                assert_eq!(found(&text), [(position, kind)], "at {position}");
            }
        }
    }

    #[test]
    fn similar_text_is_not_reported() {
        for text in [
            "ghp_short",
            "github_pat_[REDACTED]",
            "sk-ant-...",
            "-----BEGIN PRIVATE KEY-----\n[REDACTED]\n-----END PRIVATE KEY-----",
            "-----BEGIN PUBLIC KEY-----\nMIIEooooooooooooooooooooooooooooo",
            "SLAKIAQ7Q7Q7Q7Q7Q7Q7Q7",
            "AKIAQ7Q7Q7Q7Q7Q7Q7Q7Q7Q7",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}

//! I5: nothing in the run's files is shaped like a credential. The repository is looked at when it
//! is pushed, so it is left out here.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::evidence::Evidence;
use super::report::{Findings, Outcome};

const CHUNK: usize = 1 << 16;
/// The longest piece that has to be seen to know a credential.
const WINDOW: usize = 256;

pub(super) fn check(evidence: &Evidence<'_>) -> Outcome {
    let mut findings = Findings::default();
    walk(evidence.run_dir, evidence.run_dir, &mut findings);
    Outcome::Checked(findings)
}

fn walk(root: &Path, dir: &Path, findings: &mut Findings) {
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
        // Links are not followed, pipes and devices not opened.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(root, &path, findings),
            Ok(kind) if kind.is_file() => match File::open(&path).and_then(scan) {
                Ok(hits) => {
                    for (place, kind) in hits {
                        findings.fail(format!("{} holds {kind} at byte {place}", shown(&path)));
                    }
                }
                // A live run may have moved it on.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => findings.fail(format!("{} cannot be read: {error}", shown(&path))),
            },
            Ok(_) | Err(_) => {}
        }
    }
}

/// Returns where credentials begin and what they are; never what they say.
fn scan(mut source: impl Read) -> io::Result<Vec<(usize, &'static str)>> {
    let mut hits = Vec::new();
    let mut bytes: Vec<u8> = Vec::new();
    // How many bytes were dropped, and how many of the kept ones were looked at already.
    let (mut dropped, mut seen) = (0, 0);
    loop {
        let before = bytes.len();
        (&mut source).take(CHUNK as u64).read_to_end(&mut bytes)?;
        let at_end = bytes.len() == before;
        let end = if at_end {
            bytes.len()
        } else {
            bytes.len().saturating_sub(WINDOW)
        };
        for place in seen..end.max(seen) {
            if let Some(kind) = credential(&bytes, place) {
                hits.push((dropped + place, kind));
            }
        }
        if at_end {
            return Ok(hits);
        }
        seen = end.max(seen);
        // One byte before stays, because it can be part of the same word.
        let cut = seen.saturating_sub(1);
        bytes.drain(..cut);
        dropped += cut;
        seen -= cut;
    }
}

/// A prefix, the characters that follow it, how many at least, and the name for people.
type Shape = (&'static [u8], fn(u8) -> bool, usize, &'static str);

const SHAPES: [Shape; 8] = [
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

fn credential(bytes: &[u8], place: usize) -> Option<&'static str> {
    let rest = &bytes[place..];
    match rest.first()? {
        b'g' | b's' | b'A' => token(bytes, place),
        b'-' if is_private_key(rest) => Some("a private key"),
        _ => None,
    }
}

fn token(bytes: &[u8], place: usize) -> Option<&'static str> {
    let rest = &bytes[place..];
    SHAPES
        .into_iter()
        .find_map(|(prefix, follows, least, kind)| {
            let body = rest.strip_prefix(prefix)?;
            let length = body.iter().take_while(|byte| follows(**byte)).count();
            // A key id has a fixed length; longer words are something else.
            let whole = if prefix == b"AKIA" {
                let apart = place == 0 || !is_alphanumeric(bytes[place - 1]);
                let next = body.get(length).copied().unwrap_or(b' ');
                length == least && apart && !is_alphanumeric(next)
            } else {
                length >= least
            };
            whole.then_some(kind)
        })
}

/// Tells whether a key begins here: its heading, then a line of its body.
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
    // In JSON the line's end is written out.
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

    // The samples are put together here, so that no scanner takes this file for a leak.
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
            for place in [
                0,
                1,
                CHUNK - 300,
                CHUNK - 20,
                CHUNK - 1,
                CHUNK,
                2 * CHUNK - 256,
            ] {
                let text = format!("{}{sample} and more", " ".repeat(place));
                assert_eq!(found(&text), [(place, kind)], "at {place}");
            }
        }
    }

    #[test]
    fn what_only_looks_similar_is_not_found() {
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

//! I2: the journal is whole and unbroken, and the logs begin with what they ever held.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use super::digest;
use super::evidence::Evidence;
use super::report::{Findings, Outcome};

const GROWING: [&str; 3] = ["activity.log", "errors.log", "guardrails.md"];
const STAMPED: [&str; 2] = ["activity.log", "errors.log"];

pub(super) fn check(evidence: &Evidence<'_>) -> Outcome {
    let mut findings = Findings::default();
    for damage in &evidence.journal.damage {
        findings.fail(damage);
    }
    let files = evidence.run_dir.join("files");
    for name in GROWING {
        let marks = marks(evidence, name, &mut findings);
        if let Err(error) = compare(&files.join(name), name, &marks, &mut findings) {
            findings.fail(format!("files/{name} cannot be read: {error}"));
        }
    }
    for name in STAMPED {
        if let Err(error) = stamped(&files.join(name), name, &mut findings) {
            findings.fail(format!("files/{name} cannot be read: {error}"));
        }
    }
    Outcome::Checked(findings)
}

/// What a file was at some moment.
struct Mark<'a> {
    record: String,
    bytes: u64,
    sha256: &'a str,
}

/// Returns what the journal says about a file, oldest first.
fn marks<'a>(evidence: &'a Evidence<'_>, name: &str, findings: &mut Findings) -> Vec<Mark<'a>> {
    let mut marks: Vec<Mark<'a>> = Vec::new();
    for record in evidence.records("iteration_finished") {
        let log = &record.event()["logs"][name];
        let (Some(bytes), Some(sha256)) = (log["bytes"].as_u64(), log["sha256"].as_str()) else {
            findings.fail(format!(
                "{} does not say how long `{name}` was",
                record.name()
            ));
            continue;
        };
        if let Some(before) = marks.last().filter(|before| before.bytes > bytes) {
            findings.fail(format!(
                "files/{name} had {} bytes at {} and {bytes} at {}",
                before.bytes,
                before.record,
                record.name()
            ));
            continue;
        }
        let record = record.name();
        marks.push(Mark {
            record,
            bytes,
            sha256,
        });
    }
    marks
}

fn compare(path: &Path, name: &str, marks: &[Mark<'_>], findings: &mut Findings) -> io::Result<()> {
    let lengths: Vec<u64> = marks.iter().map(|mark| mark.bytes).collect();
    let digests = digest::of_beginnings(path, &lengths)?;
    for (mark, digest) in marks.iter().zip(digests) {
        let Mark { record, bytes, .. } = mark;
        match digest {
            None => findings.fail(format!(
                "files/{name} is shorter than its {bytes} bytes at {record}"
            )),
            Some(digest) if digest != mark.sha256 => findings.fail(format!(
                "files/{name} was rewritten: its first {bytes} bytes are not those of {record}"
            )),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Checks that every line of a log is whole and says when and in which iteration it was written.
fn stamped(path: &Path, name: &str, findings: &mut Findings) -> io::Result<()> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.last() != Some(&b'\n') {
            findings.fail(format!("files/{name} line {number} has no end"));
        } else if !has_stamp(&line) {
            findings.fail(format!(
                "files/{name} line {number} does not begin with a time and an iteration"
            ));
        }
    }
    Ok(())
}

fn has_stamp(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let mut words = line.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_default();
    let (time, iteration) = (next(), next());
    let number = iteration.strip_prefix("iteration=").unwrap_or_default();
    time.parse::<jiff::Timestamp>().is_ok() && number.parse::<u64>().is_ok()
}

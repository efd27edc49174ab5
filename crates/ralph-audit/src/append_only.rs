//! I2: the journal is complete and its chain is unbroken, and the logs start with their recorded
//! content.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use super::digest;
use super::evidence::Evidence;
use super::report::{AuditOutcome, Findings};

/// The append-only files, and their names in the record of an iteration.
const APPEND_ONLY_FILES: [(&str, Option<&str>); 4] = [
    ("files/activity.log", Some("activity.log")),
    ("files/errors.log", Some("errors.log")),
    ("files/guardrails.md", Some("guardrails.md")),
    ("egress.jsonl", None),
];
const STAMPED_LOGS: [&str; 2] = ["files/activity.log", "files/errors.log"];

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let mut findings = Findings::default();
    for damage in &evidence.journal.damage {
        findings.fail(damage);
    }
    evidence.seal.check(&evidence.journal, &mut findings);
    if let Some(torn) = &evidence.journal.torn {
        let is_crash = evidence.seal.allows_torn_end(&evidence.journal);
        report_torn_end(evidence, torn, is_crash, &mut findings);
    }
    for (path, log) in APPEND_ONLY_FILES {
        let prefixes = recorded_prefixes(evidence, path, log, &mut findings);
        if let Err(error) =
            check_prefixes(&evidence.run_dir.join(path), path, &prefixes, &mut findings)
        {
            findings.fail(format!("{path} cannot be read: {error}"));
        }
    }
    for path in STAMPED_LOGS {
        if let Err(error) = check_stamps(evidence, path, &mut findings) {
            findings.fail(format!("{path} cannot be read: {error}"));
        }
    }
    AuditOutcome::Checked(findings)
}

/// Reports a file that ends in the middle of a line. A crash can cause that, and `ralph resume`
/// repairs it.
fn report_torn_end(evidence: &Evidence<'_>, what: &str, is_crash: bool, findings: &mut Findings) {
    if is_crash && !evidence.has_ended() {
        findings.note(format!(
            "{what}, as after a crash; `ralph resume` moves the incomplete line to recovered/"
        ));
    } else {
        findings.fail(what);
    }
}

/// The recorded state of a file at some point.
struct RecordedPrefix<'a> {
    record: String,
    bytes: u64,
    sha256: &'a str,
}

/// Returns the recorded states of a file, oldest first.
fn recorded_prefixes<'a>(
    evidence: &'a Evidence<'_>,
    path: &str,
    log: Option<&str>,
    findings: &mut Findings,
) -> Vec<RecordedPrefix<'a>> {
    let mut prefixes: Vec<RecordedPrefix<'a>> = Vec::new();
    for record in &evidence.journal.records {
        let (entry, name) = match (record.kind(), log) {
            ("iteration_finished", Some(log)) => (&record.event()["logs"][log], log),
            ("files_recorded", _) => (&record.event()["files"][path], ""),
            (_, _) => continue,
        };
        let (Some(bytes), Some(sha256)) = (entry["bytes"].as_u64(), entry["sha256"].as_str())
        else {
            if !name.is_empty() {
                findings.fail(format!(
                    "{} does not record the length of `{name}`",
                    record.describe()
                ));
            }
            continue;
        };
        if let Some(before) = prefixes.last().filter(|before| before.bytes > bytes) {
            findings.fail(format!(
                "{path} had {} bytes at {} and {bytes} at {}",
                before.bytes,
                before.record,
                record.describe()
            ));
            continue;
        }
        let record = record.describe();
        prefixes.push(RecordedPrefix {
            record,
            bytes,
            sha256,
        });
    }
    prefixes
}

fn check_prefixes(
    file: &Path,
    path: &str,
    prefixes: &[RecordedPrefix<'_>],
    findings: &mut Findings,
) -> io::Result<()> {
    let lengths: Vec<u64> = prefixes.iter().map(|prefix| prefix.bytes).collect();
    let digests = digest::prefix_digests(file, &lengths)?;
    for (prefix, digest) in prefixes.iter().zip(digests) {
        let RecordedPrefix { record, bytes, .. } = prefix;
        match digest {
            None => findings.fail(format!(
                "{path} is shorter than the {bytes} bytes at {record}"
            )),
            Some(digest) if digest != prefix.sha256 => findings.fail(format!(
                "{path} was rewritten: its first {bytes} bytes are not those of {record}"
            )),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Checks that every line of a log is complete and contains its time and iteration.
fn check_stamps(evidence: &Evidence<'_>, path: &str, findings: &mut Findings) -> io::Result<()> {
    let file = match File::open(evidence.run_dir.join(path)) {
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
            let is_crash = evidence.journal.is_sealed();
            let what = format!("{path} line {number} is incomplete");
            report_torn_end(evidence, &what, is_crash, findings);
        } else if !has_stamp(&line) {
            findings.fail(format!(
                "{path} line {number} does not begin with a time and an iteration"
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

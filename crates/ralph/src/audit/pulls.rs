//! I4: there is one pull request, and it stands at the commit that was pushed last.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::evidence::Evidence;
use super::journal::Record;
use super::report::{Findings, Outcome};

pub(super) fn check(evidence: &Evidence<'_>) -> Outcome {
    if !is_kept_here(evidence) {
        return Outcome::NotApplicable("its pull requests are not kept on this machine");
    }
    let records = records(evidence);
    let updates: Vec<&Record> = evidence.records("pull_request_updated").collect();
    if updates.is_empty() && records.is_empty() {
        return Outcome::NotApplicable("it has no pull request");
    }
    let mut findings = Findings::default();
    find_doubles(&records, &mut findings);
    find_numbers(&updates, &mut findings);
    if let Some(last) = updates.last() {
        compare(evidence, last, &records, &mut findings);
    }
    Outcome::Checked(findings)
}

/// Tells whether the run's pull requests are records in the state directory.
pub(super) fn is_kept_here(evidence: &Evidence<'_>) -> bool {
    evidence.planned("scm") == "local"
}

/// A pull request of the run.
#[derive(Debug)]
pub(super) struct Pull {
    /// Where its record is.
    pub(super) path: PathBuf,
    pub(super) number: Option<u64>,
    pub(super) head: String,
    pub(super) commit: String,
}

/// Returns the pull requests of the run.
pub(super) fn records(evidence: &Evidence<'_>) -> Vec<Pull> {
    let run = evidence.run();
    let mut pulls: Vec<Pull> = entries(&evidence.state_dir.join("pulls"))
        .iter()
        .flat_map(|shelf| entries(shelf))
        .filter(|path| path.extension() == Some("json".as_ref()))
        .filter_map(|path| pull(path, &run))
        .collect();
    pulls.sort_by(|a, b| a.path.cmp(&b.path));
    pulls
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

fn pull(path: PathBuf, run: &str) -> Option<Pull> {
    let value: Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    (text("run") == run).then(|| Pull {
        number: value["number"].as_u64(),
        head: text("head"),
        commit: text("commit"),
        path,
    })
}

fn find_doubles(records: &[Pull], findings: &mut Findings) {
    let mut by_head: BTreeMap<&str, &Pull> = BTreeMap::new();
    for pull in records {
        if let Some(first) = by_head.insert(&pull.head, pull) {
            findings.fail(format!(
                "branch `{}` has two pull requests: {} and {}",
                pull.head,
                first.path.display(),
                pull.path.display()
            ));
        }
    }
}

/// A run has one branch, so its journal speaks of one pull request.
fn find_numbers(updates: &[&Record], findings: &mut Findings) {
    let number = |record: &Record| record.event()["pull"]["number"].as_u64();
    for pair in updates.windows(2) {
        if number(pair[0]) != number(pair[1]) {
            findings.fail(format!(
                "{} is about another pull request than {}",
                pair[1].name(),
                pair[0].name()
            ));
        }
    }
}

fn compare(evidence: &Evidence<'_>, update: &Record, records: &[Pull], findings: &mut Findings) {
    let number = update.event()["pull"]["number"].as_u64();
    let told = update.event()["pull"]["head"].as_str().unwrap_or_default();
    let pushed_before = |limit: u64| {
        let mut pushed = evidence.records("pushed");
        let last = pushed.rfind(|record| record.number < limit);
        last.map_or("", |record| record.text("head"))
    };
    let (then, now) = (pushed_before(update.number), pushed_before(u64::MAX));
    if told != then {
        findings.fail(format!(
            "{} says commit {told}, but the last one pushed before it is {then}",
            update.name()
        ));
    }
    let Some(pull) = records.iter().find(|pull| pull.number == number) else {
        let number = number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        return findings.fail(format!(
            "pull request {number} of {} has no readable record in pulls/",
            update.name()
        ));
    };
    // Between a push and the update that follows it the pull request is behind.
    let may_be_behind = !evidence.has_ended() && pull.commit == then;
    if pull.commit != now && !may_be_behind {
        findings.fail(format!(
            "{} stands at commit {}, the last one pushed is {now}",
            pull.path.display(),
            pull.commit
        ));
    }
}

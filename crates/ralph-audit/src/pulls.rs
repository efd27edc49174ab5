//! I4: there is one pull request, and its head is the commit that was pushed last.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::evidence::Evidence;
use super::journal::AuditRecord;
use super::report::{AuditOutcome, Findings};

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    if !are_stored_locally(evidence) {
        return AuditOutcome::NotApplicable("its pull requests are not stored on this machine");
    }
    let records = load_pull_requests(evidence);
    let updates: Vec<&AuditRecord> = evidence.records("pull_request_updated").collect();
    if updates.is_empty() && records.is_empty() {
        return AuditOutcome::NotApplicable("the run has no pull request");
    }
    let mut findings = Findings::default();
    report_duplicates(&records, &mut findings);
    report_several_numbers(&updates, &mut findings);
    if let Some(last) = updates.last() {
        check_last_update(evidence, last, &records, &mut findings);
    }
    AuditOutcome::Checked(findings)
}

/// Returns whether the run's pull requests are records in the state directory.
pub(super) fn are_stored_locally(evidence: &Evidence<'_>) -> bool {
    evidence.plan_text("scm") == "local"
}

/// A pull request of the run.
#[derive(Debug)]
pub(super) struct AuditPullRequest {
    /// The path of its record.
    pub(super) path: PathBuf,
    pub(super) number: Option<u64>,
    pub(super) head: String,
    pub(super) commit: String,
}

/// Returns the pull requests of the run.
pub(super) fn load_pull_requests(evidence: &Evidence<'_>) -> Vec<AuditPullRequest> {
    let run = evidence.run_id();
    let mut pulls: Vec<AuditPullRequest> = directory_entries(&evidence.state_dir.join("pulls"))
        .iter()
        .flat_map(|directory| directory_entries(directory))
        .filter(|path| path.extension() == Some("json".as_ref()))
        .filter_map(|path| parse_pull_request(path, &run))
        .collect();
    pulls.sort_by(|a, b| a.path.cmp(&b.path));
    pulls
}

fn directory_entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

fn parse_pull_request(path: PathBuf, run: &str) -> Option<AuditPullRequest> {
    // The check `FIL` reports unreadable files.
    let Ok(bytes) = fs::read(&path) else {
        return None;
    };
    let Ok(value) = serde_json::from_slice::<Value>(&bytes) else {
        return None;
    };
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    (text("run") == run).then(|| AuditPullRequest {
        number: value["number"].as_u64(),
        head: text("head"),
        commit: text("commit"),
        path,
    })
}

fn report_duplicates(records: &[AuditPullRequest], findings: &mut Findings) {
    let mut by_head: BTreeMap<&str, &AuditPullRequest> = BTreeMap::new();
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

/// A run has one branch, so its journal refers to one pull request.
fn report_several_numbers(updates: &[&AuditRecord], findings: &mut Findings) {
    let number = |record: &AuditRecord| record.event()["pull"]["number"].as_u64();
    for pair in updates.windows(2) {
        if number(pair[0]) != number(pair[1]) {
            findings.fail(format!(
                "{} names another pull request than {}",
                pair[1].describe(),
                pair[0].describe()
            ));
        }
    }
}

fn check_last_update(
    evidence: &Evidence<'_>,
    update: &AuditRecord,
    records: &[AuditPullRequest],
    findings: &mut Findings,
) {
    let number = update.event()["pull"]["number"].as_u64();
    let recorded = update.event()["pull"]["head"].as_str().unwrap_or_default();
    let pushed_before = |limit: u64| {
        let mut pushed = evidence.records("pushed");
        let last = pushed.rfind(|record| record.number < limit);
        last.map_or("", |record| record.text("head"))
    };
    let (then, now) = (pushed_before(update.number), pushed_before(u64::MAX));
    if recorded != then {
        findings.fail(format!(
            "{} names commit {recorded}, but the last one pushed before it is {then}",
            update.describe()
        ));
    }
    let Some(pull) = records.iter().find(|pull| pull.number == number) else {
        let number = number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        return findings.fail(format!(
            "pull request {number} of {} has no readable record in pulls/",
            update.describe()
        ));
    };
    // Between a push and the next update, the pull request is behind.
    let may_be_behind = !evidence.has_ended() && pull.commit == then;
    if pull.commit != now && !may_be_behind {
        findings.fail(format!(
            "{} is at commit {}, but the last one pushed is {now}",
            pull.path.display(),
            pull.commit
        ));
    }
}

//! I12: success means that the verification in a clean room was green for exactly the delivered
//! commit.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::evidence::Evidence;
use super::host_checks;
use super::journal::AuditRecord;
use super::pulls;
use super::report::{AuditOutcome, Findings};
use super::task;

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let succeeded = evidence
        .records("status_changed")
        .find(|record| record.text("status") == "succeeded");
    let Some(succeeded) = succeeded else {
        return AuditOutcome::NotApplicable("the run has not succeeded");
    };
    let mut findings = Findings::default();
    let baseline = evidence.records("baseline_finished").next_back();
    if let Some(baseline) = baseline
        && evidence.records("iteration_started").next().is_none()
    {
        check_success_without_work(evidence, baseline, &mut findings);
        return AuditOutcome::Checked(findings);
    }
    let verdict = evidence
        .records("verify_finished")
        .rfind(|record| record.number < succeeded.number);
    if let Some(verdict) = verdict {
        check_verdict(evidence, verdict, succeeded, &mut findings);
        check_flaky_commit(evidence, verdict, &mut findings);
        check_delivered_commit(evidence, verdict.text("head"), &mut findings);
        host_checks::check_success(evidence, succeeded, verdict.text("head"), &mut findings);
    } else {
        findings.fail(format!(
            "{} has no verification before it",
            succeeded.describe()
        ));
    }
    check_boxes_ticked(evidence, &mut findings);
    AuditOutcome::Checked(findings)
}

/// Checks a success without any work: every check was green at the base commit, and nothing was
/// delivered.
fn check_success_without_work(
    evidence: &Evidence<'_>,
    baseline: &AuditRecord,
    findings: &mut Findings,
) {
    let name = baseline.describe();
    let base = evidence.plan_text("base");
    if baseline.text("commit") != base {
        findings.fail(format!("{name} does not name the base commit {base}"));
    }
    let green = baseline.event()["green"].as_array();
    let green: BTreeSet<&str> = green
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    check_results(baseline, findings);
    for check in baseline.event()["checks"].as_array().into_iter().flatten() {
        let check_name = check["name"].as_str().unwrap_or("?");
        if !green.contains(check_name) {
            findings.fail(format!("{name}: check `{check_name}` was not green"));
        }
    }
    for kind in ["pushed", "pull_request_updated"] {
        if let Some(record) = evidence.records(kind).next() {
            findings.fail(format!(
                "{} occurs in a run without any work",
                record.describe()
            ));
        }
    }
}

/// Checks that the verification was green and verified the contract in force.
fn check_verdict(
    evidence: &Evidence<'_>,
    verdict: &AuditRecord,
    success: &AuditRecord,
    findings: &mut Findings,
) {
    let name = verdict.describe();
    if verdict.event()["green"] != true {
        findings.fail(format!(
            "{name}, the last one before the success, is not green"
        ));
    }
    check_results(verdict, findings);
    let contract = verdict.text("contract");
    for (moment, at) in [
        ("at that time", verdict.number),
        ("at the success", success.number),
    ] {
        let in_force = evidence.contract_at(at);
        if contract != in_force {
            findings.fail(format!(
                "{name} verified contract {contract}, but {in_force} was in force {moment}"
            ));
        }
    }
}

/// Checks the results of the checks in a record.
fn check_results(record: &AuditRecord, findings: &mut Findings) {
    let name = record.describe();
    let checks = record.event()["checks"].as_array();
    let checks = checks.map(Vec::as_slice).unwrap_or_default();
    if checks.is_empty() {
        findings.fail(format!("{name} ran no checks"));
    }
    for check in checks {
        let check_name = check["name"].as_str().unwrap_or("?");
        if check["ended"]["exited"] != 0 {
            findings.fail(format!(
                "{name}: check `{check_name}` ended with {}",
                check["ended"]
            ));
        }
        let tests = &check["tests"];
        if !tests.is_null() && executed_tests(tests) == 0 {
            findings.fail(format!("{name}: check `{check_name}` ran no tests"));
        }
        if let Some(failed @ 1..) = tests["failed"].as_u64() {
            findings.fail(format!(
                "{name}: check `{check_name}` reports failed tests: {failed}"
            ));
        }
    }
}

/// Checks that a commit with flaky checks was green twice in a row.
fn check_flaky_commit(evidence: &Evidence<'_>, verdict: &AuditRecord, findings: &mut Findings) {
    let kinds = verdict.event()["findings"].as_array();
    let is_flaky = kinds.into_iter().flatten().any(|f| f["kind"] == "flaky");
    let before = evidence
        .records("verify_finished")
        .rfind(|record| record.number < verdict.number);
    let was_green = before.is_some_and(|before| {
        before.event()["green"] == true && before.text("head") == verdict.text("head")
    });
    if is_flaky && !was_green {
        let name = verdict.describe();
        findings.fail(format!(
            "{name} reports the commit as flaky, but it was not green twice in a row"
        ));
    }
}

fn executed_tests(tests: &Value) -> u64 {
    let number = |key: &str| tests[key].as_u64().unwrap_or_default();
    number("passed") + number("failed")
}

/// Checks that the commit was pushed, is in the pull request, and is the head of the branch.
fn check_delivered_commit(evidence: &Evidence<'_>, head: &str, findings: &mut Findings) {
    let mut expect = |location: &str, commit: &str| {
        if commit != head {
            findings.fail(format!(
                "{location} is at {commit}, but the verified commit is {head}"
            ));
        }
    };
    let pushed = evidence.records("pushed").next_back();
    expect(
        "the last push",
        pushed.map_or("nothing", |record| record.text("head")),
    );
    if evidence.plan_text("delivery") == "pull_request" && pulls::are_stored_locally(evidence) {
        let number = |record: &AuditRecord| record.event()["pull"]["number"].as_u64();
        let last = evidence.records("pull_request_updated").next_back();
        let records = pulls::load_pull_requests(evidence);
        let pull = records
            .iter()
            .find(|pull| pull.number == last.and_then(number));
        expect(
            "the pull request",
            pull.map_or("nothing", |pull| &pull.commit),
        );
    }
    let branch = evidence.plan_text("branch");
    match evidence.git.branch_head(&evidence.repo(), branch) {
        Ok(tip) => expect(
            "the branch in repo.git",
            tip.as_deref().unwrap_or("nothing"),
        ),
        Err(error) => findings.fail(format!("repo.git cannot be read: {error}")),
    }
    check_remote_branch(evidence, branch, head, findings);
}

/// Checks the repository that was pushed to. Later changes by users are permitted, unless the head
/// of the branch is an unverified commit.
fn check_remote_branch(evidence: &Evidence<'_>, branch: &str, head: &str, findings: &mut Findings) {
    let address = evidence.repo_address();
    let Some(repo) = local_repo_path(address) else {
        return findings.note(format!(
            "`{address}` is not on this machine and was not checked"
        ));
    };
    if !repo.exists() {
        return findings.note(format!("`{}` no longer exists", repo.display()));
    }
    match evidence.git.remote_branch_head(&repo, branch) {
        Ok(None) => findings.note(format!(
            "`{}` no longer has branch `{branch}`",
            repo.display()
        )),
        Ok(Some(tip)) if tip != head => findings.fail(format!(
            "branch `{branch}` of `{}` is at {tip}, but the verified commit is {head}",
            repo.display()
        )),
        Ok(Some(_)) => {}
        Err(error) => findings.fail(format!("`{}` cannot be read: {error}", repo.display())),
    }
}

pub(super) fn local_repo_path(address: &str) -> Option<PathBuf> {
    let path = Path::new(address.strip_prefix("file://").unwrap_or(address));
    path.is_absolute().then(|| path.to_owned())
}

/// Checks that every box of the task was ticked.
fn check_boxes_ticked(evidence: &Evidence<'_>, findings: &mut Findings) {
    let last = evidence.records("boxes_ticked").next_back();
    let ticked: BTreeSet<&str> = last
        .and_then(|record| record.event()["ticked"].as_array())
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // An unreadable file counts as a file that does not match the pinned contract.
    let text = fs::read(evidence.run_dir.join("ralph_task.md"))
        .map_or_else(|_| String::new(), |bytes| task::normalize(&bytes));
    let is_pinned = task::contract_digest(&text) == evidence.contract_at(u64::MAX);
    let boxes = if is_pinned {
        task::checkboxes(&text)
    } else {
        Vec::new()
    };
    for name in boxes.iter().filter_map(|found| found.name(&text)) {
        if !ticked.contains(name) {
            findings.fail(format!("box `{name}` of the task was not ticked"));
        }
    }
    let expected = if is_pinned {
        boxes.len() as u64
    } else {
        evidence.plan()["checkboxes"].as_u64().unwrap_or_default()
    };
    if (ticked.len() as u64) < expected {
        findings.fail(format!("{} of {expected} boxes were ticked", ticked.len()));
    }
}

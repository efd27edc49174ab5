//! Part of I12 and INT: the checks of the source host and the pull request there.

use super::evidence::Evidence;
use super::journal::AuditRecord;
use super::pulls;
use super::report::Findings;

/// Checks that a run that waited for the checks of its delivered commit succeeded only with their
/// permission, and that the pull request was at this commit.
pub(super) fn check_success(
    evidence: &Evidence<'_>,
    success: &AuditRecord,
    head: &str,
    findings: &mut Findings,
) {
    let before = |record: &&AuditRecord| record.number < success.number;
    let waits = evidence.records("status_changed").filter(before);
    let mut waits = waits.filter(|record| record.text("status") == "waiting_ci");
    let waited = waits.rfind(|record| record.event()["reason"]["commit"] == head);
    let mut results = evidence.records("ci_finished").filter(before);
    let result = results.rfind(|record| record.text("commit") == head);
    // A result of an earlier wait is not one of the last wait.
    let result = result.filter(|result| waited.is_none_or(|wait| wait.number < result.number));
    match (waited, result) {
        (Some(wait), None) => findings.fail(format!(
            "{} waits for the checks of {head}, but the run succeeded without a result",
            wait.describe()
        )),
        (_, Some(result)) if result.text("decision") != "success" => findings.fail(format!(
            "{} does not permit the success: the checks are {}",
            result.describe(),
            result.text("outcome")
        )),
        (_, Some(_)) | (None, None) => {}
    }
    let is_remote = !pulls::are_stored_locally(evidence);
    if is_remote && evidence.plan_text("delivery") == "pull_request" {
        let last = evidence.records("pull_request_updated").next_back();
        let recorded = last.and_then(|record| record.event()["pull"]["head"].as_str());
        if recorded != Some(head) {
            findings.fail(format!(
                "the pull request is at {}, but the verified commit is {head}",
                recorded.unwrap_or("nothing")
            ));
        }
    }
}

/// Checks that a pull request at a host on the network was opened once, after its intent, and that no
/// run succeeded with an intent that has no outcome.
pub(super) fn check_intents(evidence: &Evidence<'_>, findings: &mut Findings) {
    if pulls::are_stored_locally(evidence) {
        return;
    }
    let mut started: Option<&AuditRecord> = None;
    let mut opened: Option<&AuditRecord> = None;
    for record in &evidence.journal.records {
        match record.kind() {
            "pull_request_started" => started = Some(record),
            "pull_request_updated" if record.event()["opened"] == true => {
                let name = record.describe();
                if started.take().is_none() {
                    findings.fail(format!("{name}: the pull request was not started"));
                }
                if let Some(first) = opened.replace(record) {
                    findings.fail(format!(
                        "{name}: a second pull request was opened, first in {}",
                        first.describe()
                    ));
                }
            }
            "status_changed" if record.text("status") == "succeeded" => {
                if let Some(started) = started {
                    findings.fail(format!(
                        "{}: the pull request has no outcome before {}",
                        started.describe(),
                        record.describe()
                    ));
                }
            }
            _ => {}
        }
    }
}

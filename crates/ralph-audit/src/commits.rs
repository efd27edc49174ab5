//! I3: every commit of the run is on its branch exactly once.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::Evidence;
use super::git::{AuditCommit, is_commit_id};
use super::journal::AuditRecord;
use super::report::{AuditOutcome, Findings};

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let (branch, base) = (evidence.plan_text("branch"), evidence.plan_text("base"));
    let has_worked = ["workspace_ready", "commits_imported", "pushed"]
        .into_iter()
        .any(|kind| evidence.records(kind).next().is_some());
    if !has_worked {
        return AuditOutcome::NotApplicable("the branch has not been created yet");
    }
    let mut findings = Findings::default();
    let commits = if is_commit_id(base) {
        commits_on_branch(evidence, branch, base)
    } else {
        Err(format!("the plan's base `{base}` is not a commit"))
    };
    match commits {
        Ok(commits) => check_recorded_commits(evidence, &commits, &mut findings),
        Err(why) => findings.fail(why),
    }
    AuditOutcome::Checked(findings)
}

fn commits_on_branch(
    evidence: &Evidence<'_>,
    branch: &str,
    base: &str,
) -> Result<Vec<AuditCommit>, String> {
    if let Some(missing) = evidence.missing_shared_objects() {
        return Err(missing);
    }
    let repo = evidence.repo();
    let in_repo = |error| format!("repo.git cannot be read: {error}");
    let tip = evidence.git.branch_head(&repo, branch).map_err(in_repo)?;
    let tip = tip.ok_or_else(|| format!("repo.git has no branch `{branch}`"))?;
    evidence
        .git
        .commits_between(&repo, base, &tip)
        .map_err(in_repo)
}

fn check_recorded_commits(
    evidence: &Evidence<'_>,
    commits: &[AuditCommit],
    findings: &mut Findings,
) {
    let ids: BTreeSet<&str> = commits.iter().map(|commit| commit.id.as_str()).collect();
    let adopted = adopted_commits(evidence, commits);
    if adopted > 0 {
        findings.note(format!(
            "{adopted} commits were imported when the run was rebuilt; no record covers them"
        ));
    }
    // The newest commit is the first.
    let commits = &commits[..commits.len() - adopted];
    let mut actions: BTreeMap<&str, &str> = BTreeMap::new();
    for commit in commits.iter().rev() {
        for action in &commit.action_trailers {
            if let Some(first) = actions.insert(action, &commit.id) {
                findings.fail(format!(
                    "`Ralph-Action: {action}` is on the branch twice: commits {first} and {}",
                    commit.id
                ));
            }
        }
    }
    check_foreign_trailers(evidence, commits, findings);
    for (record, id) in recorded_commits(evidence) {
        let (iteration, index) = action_key(record);
        let action = format!("{}/{iteration}/{index}", evidence.run_id());
        // A later `git commit --amend` in a shell changes the id of the commit but not its trailer.
        if !ids.contains(id) && !actions.contains_key(action.as_str()) {
            findings.fail(format!(
                "commit {id} of iteration {iteration}, action {index} ({}) is not on the branch",
                record.describe()
            ));
        }
    }
    for kind in ["commits_imported", "pushed"] {
        let Some(last) = evidence.records(kind).next_back() else {
            continue;
        };
        let head = last.text("head");
        if head != evidence.plan_text("base") && !ids.contains(head) {
            findings.fail(format!(
                "commit {head} of {} is not on the branch",
                last.describe()
            ));
        }
    }
}

/// Returns the number of commits, from the oldest, that were imported when a lost run was rebuilt.
fn adopted_commits(evidence: &Evidence<'_>, commits: &[AuditCommit]) -> usize {
    let mut heads = evidence.records("run_adopted").filter_map(|adopted| {
        let mut next = evidence.journal.records.iter();
        let imported = next.find(|record| {
            record.number > adopted.number
                && ["commits_imported", "status_changed"].contains(&record.kind())
        });
        imported.filter(|record| record.kind() == "commits_imported")
    });
    let Some(last) = heads.next_back() else {
        return 0;
    };
    let position = commits.iter().position(|c| c.id == last.text("head"));
    position.map_or(0, |position| commits.len() - position)
}

/// Finds trailers that name another run, or an action that this run did not start.
fn check_foreign_trailers(
    evidence: &Evidence<'_>,
    commits: &[AuditCommit],
    findings: &mut Findings,
) {
    let run = evidence.run_id();
    let started: BTreeSet<String> = evidence
        .records("action_started")
        .map(|record| {
            let (iteration, index) = action_key(record);
            format!("{run}/{iteration}/{index}")
        })
        .collect();
    for commit in commits {
        let id = &commit.id;
        for other in commit.run_trailers.iter().filter(|other| **other != run) {
            findings.fail(format!(
                "commit {id} carries `Ralph-Run: {other}` of another run"
            ));
        }
        for action in &commit.action_trailers {
            if !action.starts_with(&format!("{run}/")) {
                findings.fail(format!(
                    "commit {id} carries `Ralph-Action: {action}` of another run"
                ));
            } else if !started.contains(action) {
                findings.fail(format!(
                    "commit {id} carries `Ralph-Action: {action}`, which is not in the journal"
                ));
            }
        }
    }
}

fn action_key(record: &AuditRecord) -> (u64, u64) {
    let number = |key| record.event_u64(key).unwrap_or_default();
    (number("iteration"), number("index"))
}

/// Returns the commits of finished iterations that the host could import. Commits of an iteration
/// whose sandbox was lost are lost with it.
fn recorded_commits<'a>(evidence: &'a Evidence<'_>) -> Vec<(&'a AuditRecord, &'a str)> {
    let finished: BTreeSet<Option<u64>> = evidence
        .records("iteration_finished")
        .filter(|record| record.text("outcome") != "sandbox_lost")
        .map(|record| record.event_u64("iteration"))
        .collect();
    evidence
        .records("action_finished")
        .filter(|record| record.text("action") == "commit" && record.text("result") == "done")
        .filter(|record| finished.contains(&record.event_u64("iteration")))
        .filter(|record| !was_import_refused(evidence, record.number))
        .filter_map(|record| Some((record, parse_commit_id(record.text("detail"))?)))
        .collect()
}

/// Returns whether the host's next import after a record was refused: refused commits may never be
/// imported, because the model had to undo them.
fn was_import_refused(evidence: &Evidence<'_>, after: u64) -> bool {
    let imports = ["commits_imported", "import_refused"];
    evidence
        .journal
        .records
        .iter()
        .find(|record| record.number > after && imports.contains(&record.kind()))
        .is_some_and(|record| record.kind() == "import_refused")
}

fn parse_commit_id(detail: &str) -> Option<&str> {
    detail
        .split(|c: char| !c.is_ascii_alphanumeric())
        .find(|word| is_commit_id(word))
}

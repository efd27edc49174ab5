//! I3: every commit of the run is on its branch, once.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::Evidence;
use super::git::{Commit, is_commit_id};
use super::journal::Record;
use super::report::{Findings, Outcome};

pub(super) fn check(evidence: &Evidence<'_>) -> Outcome {
    let (branch, base) = (evidence.planned("branch"), evidence.planned("base"));
    let has_worked = ["workspace_ready", "commits_imported", "pushed"]
        .into_iter()
        .any(|kind| evidence.records(kind).next().is_some());
    if !has_worked {
        return Outcome::NotApplicable("the branch was not made yet");
    }
    let mut findings = Findings::default();
    let commits = if is_commit_id(base) {
        read(evidence, branch, base)
    } else {
        Err(format!("the plan's base `{base}` is not a commit"))
    };
    match commits {
        Ok(commits) => compare(evidence, &commits, &mut findings),
        Err(why) => findings.fail(why),
    }
    Outcome::Checked(findings)
}

fn read(evidence: &Evidence<'_>, branch: &str, base: &str) -> Result<Vec<Commit>, String> {
    let repo = evidence.repo();
    let in_repo = |error| format!("repo.git cannot be read: {error}");
    let tip = evidence.git.branch(&repo, branch).map_err(in_repo)?;
    let tip = tip.ok_or_else(|| format!("repo.git has no branch `{branch}`"))?;
    evidence.git.commits(&repo, base, &tip).map_err(in_repo)
}

fn compare(evidence: &Evidence<'_>, commits: &[Commit], findings: &mut Findings) {
    let ids: BTreeSet<&str> = commits.iter().map(|commit| commit.id.as_str()).collect();
    let mut actions: BTreeMap<&str, &str> = BTreeMap::new();
    for commit in commits.iter().rev() {
        for action in &commit.actions {
            if let Some(first) = actions.insert(action, &commit.id) {
                findings.fail(format!(
                    "`Ralph-Action: {action}` is on the branch twice: commits {first} and {}",
                    commit.id
                ));
            }
        }
    }
    foreign(evidence, commits, findings);
    for (record, id) in committed(evidence) {
        let (iteration, index) = place(record);
        let action = format!("{}/{iteration}/{index}", evidence.run());
        // A later `git commit --amend` in a shell gives the commit another id but keeps its trailer.
        if !ids.contains(id) && !actions.contains_key(action.as_str()) {
            findings.fail(format!(
                "commit {id} of iteration {iteration}, action {index} ({}) is not on the branch",
                record.name()
            ));
        }
    }
    for kind in ["commits_imported", "pushed"] {
        let Some(last) = evidence.records(kind).next_back() else {
            continue;
        };
        let head = last.text("head");
        if head != evidence.planned("base") && !ids.contains(head) {
            findings.fail(format!(
                "commit {head} of {} is not on the branch",
                last.name()
            ));
        }
    }
}

/// Finds trailers that name another run, or an action that this run did not begin.
fn foreign(evidence: &Evidence<'_>, commits: &[Commit], findings: &mut Findings) {
    let run = evidence.run();
    let begun: BTreeSet<String> = evidence
        .records("action_started")
        .map(|record| {
            let (iteration, index) = place(record);
            format!("{run}/{iteration}/{index}")
        })
        .collect();
    for commit in commits {
        let id = &commit.id;
        for other in commit.runs.iter().filter(|other| **other != run) {
            findings.fail(format!(
                "commit {id} carries `Ralph-Run: {other}` of another run"
            ));
        }
        for action in &commit.actions {
            if !action.starts_with(&format!("{run}/")) {
                findings.fail(format!(
                    "commit {id} carries `Ralph-Action: {action}` of another run"
                ));
            } else if !begun.contains(action) {
                findings.fail(format!(
                    "commit {id} carries `Ralph-Action: {action}`, which the journal does not know"
                ));
            }
        }
    }
}

fn place(record: &Record) -> (u64, u64) {
    let number = |key| record.count(key).unwrap_or_default();
    (number("iteration"), number("index"))
}

/// Returns the commits that finished iterations made and that the host was able to take. Those of an
/// iteration whose sandbox was lost are lost with it.
fn committed<'a>(evidence: &'a Evidence<'_>) -> Vec<(&'a Record, &'a str)> {
    let finished: BTreeSet<Option<u64>> = evidence
        .records("iteration_finished")
        .filter(|record| record.text("outcome") != "sandbox_lost")
        .map(|record| record.count("iteration"))
        .collect();
    evidence
        .records("action_finished")
        .filter(|record| record.text("action") == "commit" && record.text("result") == "done")
        .filter(|record| finished.contains(&record.count("iteration")))
        .filter(|record| !was_refused(evidence, record.number))
        .filter_map(|record| Some((record, commit_in(record.text("detail"))?)))
        .collect()
}

/// Tells whether the host's next look at the sandbox's commits after a record was a refusal: what it
/// refused may never come, because the model had to take it back.
fn was_refused(evidence: &Evidence<'_>, after: u64) -> bool {
    let looks = ["commits_imported", "import_refused"];
    evidence
        .journal
        .records
        .iter()
        .find(|record| record.number > after && looks.contains(&record.kind()))
        .is_some_and(|record| record.kind() == "import_refused")
}

fn commit_in(detail: &str) -> Option<&str> {
    detail
        .split(|c: char| !c.is_ascii_alphanumeric())
        .find(|word| is_commit_id(word))
}

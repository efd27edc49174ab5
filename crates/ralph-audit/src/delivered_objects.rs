//! DEL: every pushed object exists and matches its id, in `repo.git` and in the repository that it
//! was pushed to.
//!
//! A disk that loses data leaves branches that name their commits correctly: only reading every
//! object reveals a missing or empty one.

use std::ffi::OsStr;
use std::path::Path;

use super::evidence::Evidence;
use super::git::{AuditGit, is_commit_id};
use super::green;
use super::report::{AuditOutcome, Findings};

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let Some(pushed) = evidence.records("pushed").next_back() else {
        return AuditOutcome::NotApplicable("nothing was pushed");
    };
    let (base, head) = (evidence.plan_text("base"), pushed.text("head"));
    let mut findings = Findings::default();
    if !is_commit_id(base) || !is_commit_id(head) {
        findings.fail(format!("{} does not name a commit", pushed.describe()));
        return AuditOutcome::Checked(findings);
    }
    let mut check_repo = |name: &str, repo: &Path| {
        if let Some(why) = object_damage(&evidence.git, repo, base, head) {
            findings.fail(format!(
                "commit {head} of {} is not complete in {name}: {why}",
                pushed.describe()
            ));
        }
    };
    let missing = evidence.missing_shared_objects();
    if missing.is_none() {
        check_repo("repo.git", &evidence.repo());
    }
    let target = green::local_repo_path(evidence.repo_address()).filter(|repo| repo.exists());
    if let Some(target) = target
        && is_branch_at(&evidence.git, &target, evidence.plan_text("branch"), head)
    {
        check_repo(&format!("`{}`", target.display()), &target);
    }
    if let Some(missing) = missing {
        findings.fail(missing);
    }
    AuditOutcome::Checked(findings)
}

/// Returns whether a branch names a commit, even if the commit is missing. A branch that was
/// deleted or moved since was changed by the user.
fn is_branch_at(git: &AuditGit<'_>, repo: &Path, branch: &str, head: &str) -> bool {
    let reference = format!("refs/heads/{branch}");
    let args: [&OsStr; 6] = [
        "-C".as_ref(),
        repo.as_ref(),
        "rev-parse".as_ref(),
        "--verify".as_ref(),
        "--quiet".as_ref(),
        reference.as_ref(),
    ];
    git.run(&args)
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == head)
}

/// Returns the first problem with the objects between a base and a commit. Git compares each with
/// its id; it reports an empty one in its messages, not in its exit code.
fn object_damage(git: &AuditGit<'_>, repo: &Path, base: &str, head: &str) -> Option<String> {
    let range = format!("{base}..{head}");
    let args: [&OsStr; 6] = [
        "-C".as_ref(),
        repo.as_ref(),
        "rev-list".as_ref(),
        "--verify-objects".as_ref(),
        "--quiet".as_ref(),
        range.as_ref(),
    ];
    let output = match git.run(&args) {
        Ok(output) => output,
        Err(error) => return Some(error.to_string()),
    };
    let messages = String::from_utf8_lossy(&output.stderr);
    let mut lines = messages.lines().map(str::trim);
    let error = lines.find(|line| line.starts_with("error:") || line.starts_with("fatal:"));
    match error {
        Some(error) => Some(error.to_owned()),
        None if output.status.success() => None,
        None => Some(format!("git rev-list ended with {}", output.status)),
    }
}

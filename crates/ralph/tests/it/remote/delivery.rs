//! From the plan to the pull request.

use std::fs;
use std::process::Command;

use ralph_test::{FakeGitHub, FakeGitHubToken, FaultRule, GitHubFault, git};
use serde_json::json;

use super::{BRANCH, RemoteProject, assert_no_token_in};
use crate::project::{actions, claiming, commit, control, finish, write};

/// The request of a push.
const PUSH: &str = "POST /octo/app.git/git-receive-pack";
/// The first request of a push.
const PUSH_START: &str = "GET /octo/app.git/info/refs?service=git-receive-pack";

/// The first half of the work, then a pause; the second half.
fn two_halves() -> [serde_json::Value; 2] {
    let first = [
        write("a.txt", "one\n"),
        commit("Make one"),
        control("pause", "which way?"),
    ];
    let second = [write("b.txt", "two\n"), commit("Make two")];
    [
        claiming(&["M1.1"], &first),
        claiming(&["M1.1", "M1.2"], &second),
    ]
}

#[test]
fn a_run_on_github_clones_pushes_and_is_found_from_a_clone() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    remote.run().expect(0);
    let plan = remote.plan();
    assert_eq!(plan["repo"], remote.url());
    assert_eq!(plan["scm"], "github");
    assert_eq!(
        plan["scm_credential"],
        "personal access token (classic) from GITHUB_PAT"
    );
    let project = &remote.project;
    let pushed = project.event_values("pushed", "head");
    let head = remote.branch(BRANCH).unwrap();
    assert_eq!(*pushed.last().unwrap(), json!(head));
    let state = git(&remote.bare(), &["for-each-ref", "refs/ralph/task"]);
    assert!(!state.is_empty(), "the files of the run are saved");
    // The user's own clone is not changed.
    assert_eq!(project.git(&["branch", "--list", "ralph/*"]), "");
    project.audit();
    // All runs of the repository share one mirror, which has only the base branch.
    let mirrors = fs::read_dir(project.home().join("repos")).unwrap();
    let mirrors = mirrors.map(|entry| entry.unwrap().path());
    let mirrors: Vec<_> = mirrors.filter(|path| path.join("HEAD").exists()).collect();
    assert_eq!(mirrors.len(), 1, "{mirrors:?}");

    let first = project.show()["id"].clone();
    project.write_script(&[finish()]);
    project.run_with(&["--new"]).expect(0);
    assert_ne!(project.show()["id"], first);
    let clone = project.path("clone");
    git(&project.path(""), &["init", "--quiet", "clone"]);
    git(&clone, &["remote", "add", "origin", &remote.url()]);
    let mut show = project.command(&["show", "last", "--json"]);
    let shown = show.current_dir(&clone).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["id"], first);
}

#[test]
fn a_branch_that_another_user_moved_is_never_overwritten() {
    let remote = RemoteProject::new().change(|project| project.script(&two_halves()));
    remote.run().expect(11);
    remote.commit_as("Ada\u{1b}[31m", BRANCH, "theirs.txt");
    remote.commit_as("Ada\u{1b}[31m", BRANCH, "more.txt");
    let theirs = remote.branch(BRANCH);
    let project = &remote.project;
    project.ralph(&["resume", "last"]).expect(11);
    assert_eq!(remote.branch(BRANCH), theirs);
    let status = project.event_values("status_changed", "reason");
    let what = status.last().unwrap().to_string();
    assert!(
        what.contains(&format!("branch `{BRANCH}` moved by Ada")) && what.contains(", 2 commits"),
        "{what}"
    );
    assert!(
        !what.contains('\u{1b}') && !what.contains("\\u001b"),
        "{what}"
    );
    git(&remote.bare(), &["branch", "--move", BRANCH, "theirs"]);
    project.ralph(&["resume", "last"]).expect(0);
    let pushed = project.event_values("pushed", "head");
    assert_eq!(
        json!(remote.branch(BRANCH).unwrap()),
        *pushed.last().unwrap()
    );
}

#[test]
fn a_push_whose_response_is_lost_is_settled() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    let fault = FaultRule::once(PUSH, GitHubFault::LoseResponse);
    remote.github.plan(fault);
    remote.run().expect(0);
    assert!(remote.branch(BRANCH).is_some());
}

#[test]
fn a_run_that_was_killed_during_a_push_continues() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    remote.github.plan(FaultRule::once(PUSH, GitHubFault::Hang));
    let run = remote.start();
    remote.wait_for_lost(PUSH);
    run.signal(rustix::process::Signal::KILL);
    drop(run);
    let head = remote.branch(BRANCH).unwrap();
    let project = &remote.project;
    assert_eq!(project.events("pushed").len(), 0);
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(remote.branch(BRANCH), Some(head));
}

#[test]
fn a_rejected_credential_is_read_once_more() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    // Git's first request has no credential.
    let rejected = FaultRule::once(PUSH_START, GitHubFault::Status(401)).after(1);
    remote.github.plan(rejected);
    remote.run().expect(0);
    assert!(remote.branch(BRANCH).is_some());
}

#[test]
fn a_credential_that_ends_during_a_run_pauses_it() {
    let remote = RemoteProject::new().change(|project| project.script(&two_halves()));
    remote.run().expect(11);
    let rejected = FaultRule::always(PUSH_START, GitHubFault::Status(401));
    remote.github.plan(rejected);
    let project = &remote.project;
    project.ralph(&["resume", "last"]).expect(11);
    let reasons = project.event_values("status_changed", "reason");
    let reason = reasons.last().unwrap().to_string();
    assert!(
        reason.contains("the source host rejected the credential: git push failed"),
        "{reason}"
    );
    remote.github.state().rules.clear();
    project.ralph(&["resume", "last"]).expect(0);
}

#[test]
fn a_lost_repository_of_a_run_is_fetched_again() {
    let remote = RemoteProject::new().change(|project| project.script(&two_halves()));
    remote.run().expect(11);
    let project = &remote.project;
    fs::remove_dir_all(project.home().join("repos")).unwrap();
    fs::remove_dir_all(project.run_dir().join("repo.git")).unwrap();
    project.ralph(&["resume", "last"]).expect(0);
    assert!(remote.branch(BRANCH).is_some());
}

#[test]
fn a_run_on_github_is_merged_and_closed_there() {
    let remote = RemoteProject::new().change(|project| project.script(&[finish()]));
    let ended = remote.run().expect(0).stdout;
    assert!(!ended.contains("`ralph merge"), "{ended}");
    let project = &remote.project;
    let merged = project.ralph(&["merge", "last"]).expect(2);
    let error = "its repository is on 127.0.0.1, where reviews and branch rules apply";
    assert!(merged.stderr.contains(error), "{}", merged.stderr);
    let shown = project.ralph(&["pr", "last"]).expect(0).stdout;
    assert!(shown.contains("  url"), "{shown}");
    let head = remote.branch(BRANCH);
    let discarded = project
        .ralph(&["discard", "last", "--yes"])
        .expect(0)
        .stdout;
    assert!(
        discarded.contains("stays: close and delete them there"),
        "{discarded}"
    );
    assert_eq!(remote.branch(BRANCH), head);
}

#[test]
fn commands_of_the_sandbox_have_no_credential() {
    let lines = [
        actions(&[crate::project::run("env; git config --list --show-origin")]),
        finish(),
    ];
    let remote = RemoteProject::new().change(|project| project.script(&lines));
    remote.run().expect(0);
    let token = super::token();
    let home = remote.project.home();
    let found = Command::new("grep")
        .args(["--recursive", "--files-with-matches", "--fixed-strings"])
        .args([&token, home.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

/// The tokens are created during the run, so the redactor learns them before their first use.
#[test]
fn an_app_delivers_with_tokens_that_are_in_no_file() {
    let key = FakeGitHub::APP_KEY;
    let remote = RemoteProject::new().change(|project| {
        project
            .without_env("GITHUB_PAT")
            .env("GITHUB_APP_ID", "4711")
            .env("GITHUB_APP_PRIVATE_KEY_PEM", key)
            .script(&two_halves())
    });
    remote.run().expect(11);
    remote.project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(
        remote.plan()["scm_credential"],
        "GitHub App from GITHUB_APP_ID"
    );
    let pulls = remote.github.with_app(|app| app.pulls());
    assert!(!pulls[0].pull.as_ref().unwrap().is_draft);
    let tokens = remote.github.state().tokens.clone().into_iter();
    let minted = tokens.filter(|(_, kind)| *kind == FakeGitHubToken::Installation);
    let minted: Vec<String> = minted.map(|(token, _)| token).collect();
    assert!(minted.len() >= 2, "one for each process: {}", minted.len());
    let line = key.lines().nth(1).unwrap().to_owned();
    for secret in minted.iter().chain([&line]) {
        for directory in [remote.project.home(), remote.project.repo()] {
            assert_no_token_in(&directory, secret);
        }
        assert_no_token_in(remote.hosted.path(), secret);
    }
}

#[test]
fn a_pull_request_is_a_draft_until_the_run_has_succeeded() {
    let remote = RemoteProject::new().change(|project| project.script(&two_halves()));
    remote.run().expect(11);
    let drafts = || {
        let pulls = remote.github.with_app(|app| app.pulls());
        let pulls = pulls.into_iter().filter_map(|issue| issue.pull);
        pulls.map(|pull| pull.is_draft).collect::<Vec<_>>()
    };
    assert_eq!(drafts(), [true]);
    remote.project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(drafts(), [false]);
    let shown = remote.project.ralph(&["pr", "last", "--json"]).expect(0);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["number"], 1);
    assert_eq!(shown["state"], "open");
    assert_eq!(shown["commit"], remote.branch(BRANCH).unwrap());
    // The user merges it on GitHub.
    remote.github.with_app(|app| app.merge(1));
    let shown = remote.project.ralph(&["pr", "last"]).expect(0).stdout;
    assert!(shown.contains("#1 (merged)"), "{shown}");
}

#[test]
fn a_protected_branch_is_not_pushed_to() {
    let remote = RemoteProject::new().change(|project| project.script(&two_halves()));
    remote.run().expect(11);
    let pushed = remote.branch(BRANCH);
    let protect = |app: &mut ralph_test::FakeRepo| app.protected.insert(BRANCH.to_owned());
    remote.github.with_app(protect);
    remote.project.ralph(&["resume", "last"]).expect(11);
    let reasons = remote.project.event_values("status_changed", "reason");
    let reason = reasons.last().unwrap().to_string();
    assert!(reason.contains("is protected"), "{reason}");
    assert_eq!(remote.branch(BRANCH), pushed);
}

/// A lost run is rebuilt from what it pushed, in a clone, and continues to push to GitHub.
#[test]
fn a_lost_run_is_rebuilt_from_a_clone() {
    let remote = RemoteProject::new().change(|project| project.script(&two_halves()));
    remote.run().expect(11);
    let project = &remote.project;
    let lost = project.show()["id"].as_str().unwrap().to_owned();
    fs::remove_dir_all(project.home().join("runs")).unwrap();
    fs::remove_dir_all(project.home().join("repos")).unwrap();
    let bare = remote.bare();
    let fetch = ["fetch", "--quiet", bare.to_str().unwrap()];
    let branch = format!("refs/heads/{BRANCH}:refs/heads/{BRANCH}");
    project.git(&[&fetch[..], &["refs/ralph/*:refs/ralph/*", &branch]].concat());
    project.ralph(&["adopt", &lost, "--yes"]).expect(0);
    let pushed = remote.branch(BRANCH);
    // The snapshot was pushed in the middle of the first iteration, which ends with its pause again.
    project.ralph(&["resume", &lost]).expect(11);
    project.ralph(&["resume", &lost]).expect(0);
    assert_ne!(remote.branch(BRANCH), pushed);
    // The clone is only the source of the files.
    let clone = project.git(&["rev-parse", BRANCH]);
    assert_eq!(Some(clone), pushed);
}

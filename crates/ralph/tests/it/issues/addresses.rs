//! The repositories that `ralph issue` accepts.

use ralph_test::git;
use serde_json::json;

use super::fixture::{DILIGENT, IssueTest, TWO_STEPS};

/// A directory that is not in a clone needs no clone: the base commit has everything.
#[test]
fn an_issue_needs_no_clone() {
    let test = IssueTest::new(DILIGENT);
    let work = test.remote.project.path("work");
    let bare = test.remote.bare();
    git(
        &test.remote.project.path(""),
        &["clone", "--quiet", bare.to_str().unwrap(), "work"],
    );
    std::fs::write(work.join("Makefile"), "test:\n\ttest -e ralph.toml\n").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "--message", "Make"]);
    git(&work, &["push", "--quiet", "origin", "HEAD"]);
    let number = test.ready(TWO_STEPS).to_string();
    let empty = test.remote.project.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let url = test.remote.url();
    let mut command = test
        .remote
        .project
        .command(&["issue", &number, "--repo", &url, "--agent", "command"]);
    let output = command.current_dir(&empty).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(test.status(1), "status:done");
    let plan = test.remote.project.journal()[0]["plan"].take();
    assert_eq!(plan["repo"], url);
    assert_eq!(plan["base_branch"], "main");
    assert_eq!(plan["test_command"], "make test");
    let pulls = test.remote.github.with_app(|app| app.pulls());
    assert_eq!(pulls.len(), 1);
}

#[test]
fn a_second_run_of_an_issue_has_a_new_branch() {
    let test = IssueTest::new(DILIGENT);
    let number = test.ready(TWO_STEPS).to_string();
    test.remote.project.ralph(&["issue", &number]).expect(0);
    test.remote.github.with_app(|app| {
        let issue = app.issue(1);
        issue.body = TWO_STEPS.replace("2.txt", "3.txt");
        issue.labels = vec!["spec".into(), "status:ready".into()];
    });
    let path = test.remote.project.repo().display().to_string();
    let again = ["issue", &number, "--repo", &path];
    let output = test.remote.project.ralph(&again);
    let plan = test.remote.project.journal()[0]["plan"].take();
    assert_eq!(plan["branch"], "feat/files-v2", "{}", output.combined());
    assert_eq!(plan["repo"], json!(test.remote.url()));
}

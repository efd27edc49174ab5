use ralph_core::action::Claims;
use ralph_core::secret::Secret;

use super::*;
use crate::actions::check_claims;
use crate::run_fixture::{RunFixture, commit_action, git, shell_action, write_action};

/// Returns a run whose iteration has committed a file and is settled.
async fn run_with_commit(content: &str) -> RunFixture {
    let mut fixture = RunFixture::new("").await;
    fixture.begin();
    let actions = vec![write_action("a.txt", content), commit_action("Add a file")];
    assert_eq!(fixture.perform(actions).await.succeeded, 2);
    fixture.settle().await;
    fixture
}

async fn deliver_rest(fixture: &mut RunFixture) {
    deliver_remaining(&mut fixture.run).await.unwrap();
}

#[tokio::test]
async fn remaining_commits_are_pushed_once() {
    let mut fixture = Box::pin(run_with_commit("one\n")).await;
    for _ in 0..2 {
        deliver_rest(&mut fixture).await;
        let head = fixture.run.recorder.state().head.to_string();
        let branch = git(
            &fixture.user_repo(),
            &["rev-parse", "refs/heads/ralph/task"],
        );
        assert_eq!(branch, head);
        assert_eq!(fixture.events_of(&["push_started", "pushed"]).len(), 2);
    }
}

#[tokio::test]
async fn a_run_without_commits_pushes_nothing() {
    let mut fixture = RunFixture::new("").await;
    deliver_rest(&mut fixture).await;
    assert_eq!(fixture.events_of(&["push_started"]).len(), 0);
    assert_eq!(
        git(&fixture.user_repo(), &["branch", "--list", "ralph/task"]),
        ""
    );
}

#[tokio::test]
async fn a_branch_with_a_secret_that_was_learned_later_is_not_pushed() {
    let mut fixture = Box::pin(run_with_commit("minted-9f31c2\n")).await;
    let secret = Secret::new("minted-9f31c2".to_owned());
    fixture.run.services.redactor.learn("GATE", secret);
    deliver_rest(&mut fixture).await;
    assert_eq!(fixture.events_of(&["push_started"]).len(), 0);
    let errors = fixture.file("errors.log");
    assert!(errors.contains("not pushed: "), "{errors}");
}

#[tokio::test]
async fn a_branch_with_a_workflow_is_not_pushed() {
    let mut fixture = RunFixture::new("").await;
    fixture.begin();
    let add = "mkdir -p .github/workflows && echo 'on: push' > .github/workflows/ci.yml";
    let actions = vec![shell_action(add), commit_action("Add a workflow")];
    assert_eq!(fixture.perform(actions).await.succeeded, 2);
    fixture.settle().await;
    deliver_rest(&mut fixture).await;
    assert_eq!(fixture.events_of(&["push_started"]).len(), 0);
    let errors = fixture.file("errors.log");
    assert!(
        errors.contains("`.github/workflows/ci.yml` is a workflow file"),
        "{errors}"
    );
}

#[tokio::test]
async fn success_is_refused_while_boxes_are_open_or_files_are_not_committed() {
    let mut fixture = Box::pin(run_with_commit("two\n")).await;
    std::fs::write(fixture.workspace().join("base.txt"), "changed\n").unwrap();
    fixture.settle().await;
    let run = &fixture.run;
    let standing = completion_state(&run.recorder, &run.bench, &run.pinned);
    assert_eq!(standing.open_boxes, ["M1.1"]);
    assert_eq!(standing.dirty_files, ["base.txt"]);
    assert_eq!(standing.commits, 1);
    let outcome = deliver(&mut fixture.run, &IterationOutcome::StopRequested).await;
    assert_eq!(outcome.unwrap(), DeliveryOutcome::Unfinished);
    let refused = fixture.events_of(&["success_refused"]);
    assert_eq!(refused.len(), 1);
    assert_ne!(refused[0]["reasons"][0], "");
}

#[tokio::test]
async fn a_verified_commit_is_a_success() {
    let mut fixture = Box::pin(run_with_commit("one\n")).await;
    let claims = Claims {
        checkboxes_checked: vec!["M1.1".into()],
        milestones_completed: Vec::new(),
    };
    check_claims(&mut fixture.run, &claims).await.unwrap();
    let outcome = deliver(&mut fixture.run, &IterationOutcome::Completed).await;
    assert_eq!(outcome.unwrap(), DeliveryOutcome::Success);
    let state = fixture.run.recorder.state();
    assert_eq!(state.status, RunStatus::Verifying);
    assert_eq!(state.pushed.as_ref(), Some(&state.head));
    assert!(state.clean_rooms.is_empty());
}

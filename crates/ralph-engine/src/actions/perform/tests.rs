use std::fs;

use ralph_core::action::Claims;
use ralph_core::secret::Secret;

use super::super::check_claims;
use super::super::file_step::{FileStep, plan_file_step};
use super::*;
use crate::check_results::run_check;
use crate::run_fixture::{RunFixture, commit_action, git, shell_action, write_action};

/// Returns type, index and result of the recorded actions.
fn recorded(fixture: &RunFixture) -> Vec<String> {
    let events = fixture.events_of(&["action_started", "action_finished"]);
    let line = |event: &serde_json::Value| {
        let result = event["result"]["result"].as_str().unwrap_or("-");
        format!(
            "{} {} {result}",
            event["type"].as_str().unwrap(),
            event["index"]
        )
    };
    events.iter().map(line).collect()
}

#[tokio::test]
async fn each_action_is_recorded_before_and_after_its_effect() {
    let mut fixture = RunFixture::new("").await;
    fixture.begin();
    let actions = vec![
        write_action("a.txt", "one\n"),
        shell_action("cat a.txt"),
        commit_action("Add one"),
    ];
    let performed = fixture.perform(actions).await;
    assert_eq!(performed.outcome, IterationOutcome::Completed);
    assert_eq!((performed.total, performed.succeeded), (3, 3));
    let kinds: Vec<String> = recorded(&fixture)
        .iter()
        .map(|line| line.rsplit_once(' ').unwrap().0.to_owned())
        .collect();
    let expected: Vec<String> = (0..3)
        .flat_map(|index| {
            [
                format!("action_started {index}"),
                format!("action_finished {index}"),
            ]
        })
        .collect();
    assert_eq!(kinds, expected);
    let log = fixture.run.recorder.open_iteration_file("actions.jsonl");
    assert_eq!(fs::read_to_string(log).unwrap().lines().count(), 3);
    let subject = git(&fixture.workspace(), &["log", "-1", "--format=%s"]);
    assert_eq!(subject, "Add one");
}

#[tokio::test]
async fn a_failure_skips_the_rest_unless_the_task_continues() {
    for (front_matter, is_written) in [("", false), ("on_action_error: continue", true)] {
        let mut fixture = RunFixture::new(front_matter).await;
        fixture.begin();
        let actions = vec![shell_action("false"), write_action("b.txt", "b\n")];
        let performed = fixture.perform(actions).await;
        assert_eq!(fixture.workspace().join("b.txt").exists(), is_written);
        let outcome = if is_written {
            IterationOutcome::Completed
        } else {
            IterationOutcome::ActionFailed { index: 0 }
        };
        assert_eq!(performed.outcome, outcome, "{front_matter}");
        assert_eq!(performed.succeeded, usize::from(is_written));
    }
}

#[tokio::test]
async fn an_action_with_a_learned_secret_is_refused() {
    let mut fixture = RunFixture::new("").await;
    fixture.begin();
    let secret = Secret::new("minted-9f31c2".to_owned());
    fixture.run.services.redactor.learn("GATE", secret);
    let actions = vec![write_action("key.txt", "minted-9f31c2\n")];
    let performed = fixture.perform(actions).await;
    assert_eq!(performed.succeeded, 0);
    assert!(!fixture.workspace().join("key.txt").exists());
    let errors = fixture.file("errors.log");
    assert!(errors.contains("contains the value of `GATE`"), "{errors}");
    assert!(!errors.contains("minted"), "{errors}");
}

#[tokio::test]
async fn a_write_that_a_crash_left_done_is_not_repeated() {
    let fixture = RunFixture::new("").await;
    fs::write(fixture.workspace().join("a.txt"), "one\n").unwrap();
    let action = write_action("a.txt", "one\n");
    let path = WorkspacePath::parse("a.txt").unwrap();
    let run = &fixture.run;
    let intended = Some(Digest::compute(b"one\n"));
    let step = plan_file_step(
        &run.recorder,
        &run.bench,
        &run.pinned,
        &action,
        &path,
        intended,
    )
    .await
    .unwrap();
    assert!(matches!(step, FileStep::AlreadyDone { .. }));
    let step = plan_file_step(&run.recorder, &run.bench, &run.pinned, &action, &path, None)
        .await
        .unwrap();
    assert!(matches!(step, FileStep::Write { .. }));
}

#[tokio::test]
async fn workflow_files_need_the_permission_of_the_task() {
    let path = ".github/workflows/ci.yml";
    for (front_matter, is_refused) in [("", true), ("allow_workflow_changes: true", false)] {
        let fixture = RunFixture::new(front_matter).await;
        let action = write_action(path, "on: push\n");
        let path = WorkspacePath::parse(path).unwrap();
        let run = &fixture.run;
        let step = plan_file_step(&run.recorder, &run.bench, &run.pinned, &action, &path, None)
            .await
            .unwrap();
        let refused = matches!(step, FileStep::Resolved(ActionResult::Refused { .. }));
        assert_eq!(refused, is_refused, "{front_matter}");
    }
}

#[tokio::test]
async fn only_verified_claims_are_ticked() {
    let mut fixture = RunFixture::new("").await;
    fixture.begin();
    let claims = Claims {
        checkboxes_checked: vec!["M1.1".into(), "M9".into()],
        milestones_completed: Vec::new(),
    };
    check_claims(&mut fixture.run, &claims).await.unwrap();
    assert!(fixture.run.recorder.state().ticked.is_empty());
    fixture.perform(vec![write_action("a.txt", "one\n")]).await;
    check_claims(&mut fixture.run, &claims).await.unwrap();
    let ticked: Vec<&String> = fixture.run.recorder.state().ticked.iter().collect();
    assert_eq!(ticked, ["M1.1"]);
    let checked = fixture.events_of(&["claim_checked"]);
    let checked: Vec<(&str, bool)> = checked
        .iter()
        .map(|event| {
            let verified = event["verified"].as_bool().unwrap();
            (event["checkbox"].as_str().unwrap(), verified)
        })
        .collect();
    assert_eq!(
        checked,
        [
            ("M1.1", false),
            ("M9", false),
            ("M1.1", true),
            ("M9", false)
        ]
    );
}

#[tokio::test]
async fn a_check_runs_again_only_after_a_command() {
    let mut fixture = RunFixture::new("").await;
    fixture.begin();
    for expected in [1, 1, 2] {
        if expected == 2 {
            fixture.perform(vec![shell_action("true")]).await;
        }
        let run = &mut fixture.run;
        let check = run_check(
            &mut run.recorder,
            &run.bench,
            &mut run.controls,
            &mut run.scratch,
            "name",
            "test -d .git",
        );
        assert!(check.await.unwrap().is_green());
        assert_eq!(fixture.events_of(&["check_started"]).len(), expected);
    }
}

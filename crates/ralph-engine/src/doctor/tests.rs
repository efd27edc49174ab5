use ralph_core::doctor::{AppliedBy, DoctorTrigger};
use serde_json::Value;

use super::{apply_report, consult_doctor};
use crate::run_fixture::RunFixture;

const REPORT: &str = r#"{"summary": "The same test fails.",
 "guardrails": [{"name": "fixture", "trigger": "before the tests", "instruction": "make the fixture", "evidence": "exit 1"}],
 "spec_edits": [{"find": "One is there", "replace": "One line is there", "why": "clearer"}]}"#;

async fn consult(fixture: &mut RunFixture) -> Option<u32> {
    let run = &mut fixture.run;
    consult_doctor(
        &mut run.recorder,
        &mut run.controls,
        &run.services,
        &run.pinned,
        DoctorTrigger::Person,
    )
    .await
    .unwrap()
}

fn apply(fixture: &mut RunFixture, by: AppliedBy) -> Option<String> {
    let run = &mut fixture.run;
    apply_report(&mut run.recorder, &run.services, &run.pinned, by).unwrap()
}

fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().map(|event| event["type"].as_str().unwrap());
    types.filter(|name| name.starts_with("doctor_")).collect()
}

#[tokio::test]
async fn a_report_is_recorded_with_its_question_and_reply() {
    let mut fixture = RunFixture::with_replies("", &[REPORT]).await;
    assert_eq!(consult(&mut fixture).await, Some(1));
    let events = fixture.events();
    assert_eq!(
        types(&events),
        ["doctor_asked", "doctor_replied", "doctor_reported"]
    );
    let report = fixture.file("diagnostics.md");
    assert!(report.contains("The same test fails."), "{report}");
    let reply = fixture.run.recorder.dir.doctor(1).join("reply-1.json");
    assert!(reply.exists());
}

#[tokio::test]
async fn an_unreadable_reply_is_repaired_once() {
    let mut fixture = RunFixture::with_replies("", &["no idea", REPORT]).await;
    assert_eq!(consult(&mut fixture).await, Some(1));
    let mut fixture = RunFixture::with_replies("", &["no idea", "still none"]).await;
    assert_eq!(consult(&mut fixture).await, None);
    let failed = fixture.events_of(&["doctor_failed"]);
    let given_up: Vec<_> = failed.iter().map(|event| &event["given_up"]).collect();
    assert_eq!(given_up, [false, true]);
}

#[tokio::test]
async fn a_report_is_applied_once() {
    let mut fixture = RunFixture::with_replies("", &[REPORT]).await;
    assert_eq!(apply(&mut fixture, AppliedBy::Person), None);
    consult(&mut fixture).await;
    assert!(apply(&mut fixture, AppliedBy::Person).is_some());
    assert_eq!(apply(&mut fixture, AppliedBy::Person), None);
    let guardrails = fixture.file("guardrails.md");
    assert_eq!(guardrails.matches("make the fixture").count(), 1);
}

#[tokio::test]
async fn an_edit_is_refused_if_the_task_could_not_be_run() {
    // The edit removes the only checkbox.
    let report = REPORT.replace("One is there", "- [ ] M1.1 One is there");
    let mut fixture = RunFixture::with_replies("", &[&report]).await;
    consult(&mut fixture).await;
    apply(&mut fixture, AppliedBy::Person);
    let applied = fixture.events_of(&["diagnosis_applied"]).remove(0);
    assert_eq!(applied["edits"], 0, "{applied}");
    let refused = applied["refused"][0].as_str().unwrap();
    assert!(refused.contains("the task has no checkbox"), "{refused}");
    assert_eq!(fixture.run.recorder.state().wanted_contract, None);
}

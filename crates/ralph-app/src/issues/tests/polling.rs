use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Barrier, watch};

use super::fixture::{DILIGENT, IssueProject, RecordingFrontEnd, TWO_STEPS, WAIT_TIMEOUT, options};
use crate::issues::{
    IssueEnd, IssueEvent, PollEnd, PollOptions, UnmetDependencies, WaitingIssue, poll_issues,
};

/// Polls until these issues are done.
async fn poll(project: &IssueProject, workers: usize, until: &[u64]) -> Vec<IssueEvent> {
    let (stop, interrupted) = watch::channel(false);
    let mut front_end = RecordingFrontEnd::stopping_after(until, stop);
    front_end.meeting = (workers > 1).then(|| Barrier::new(workers));
    let front_end = Arc::new(front_end);
    let options = PollOptions {
        interval: Duration::from_millis(20),
        timeout: None,
        workers,
        run: options(),
    };
    let polled = poll_issues(
        project.repository.clone(),
        options,
        front_end.clone(),
        interrupted,
    );
    let polled = tokio::time::timeout(WAIT_TIMEOUT, Box::pin(polled)).await;
    let events = front_end.events();
    assert!(polled.is_ok(), "{until:?} are not done: {events:?}");
    assert_eq!(polled.unwrap().unwrap(), PollEnd::Interrupted);
    events
}

fn done(events: &[IssueEvent]) -> Vec<u64> {
    let done = events.iter().filter_map(|event| match event {
        IssueEvent::Ended {
            number,
            end: IssueEnd::Done { .. },
        } => Some(*number),
        IssueEvent::Ended { .. }
        | IssueEvent::Watching { .. }
        | IssueEvent::Looked { .. }
        | IssueEvent::LookFailed(_)
        | IssueEvent::Unblocked { .. }
        | IssueEvent::Started { .. }
        | IssueEvent::Notice { .. } => None,
    });
    done.collect()
}

fn on_branch(branch: &str, depends: &[u64]) -> String {
    TWO_STEPS.replace(
        "branch: feat/files",
        &format!("branch: {branch}\ndepends: {depends:?}"),
    )
}

#[tokio::test]
async fn polling_respects_dependencies() {
    let project = IssueProject::new(DILIGENT).await;
    project
        .tracker
        .add(1, &on_branch("feat/last", &[2]), &["spec", "status:ready"]);
    project.tracker.add(2, TWO_STEPS, &["spec", "status:ready"]);
    project.tracker.add(3, TWO_STEPS, &["status:ready"]);
    let events = poll(&project, 1, &[1, 2]).await;
    let waits = [WaitingIssue {
        number: 1,
        unmet: UnmetDependencies {
            on: vec![2],
            unknown: Vec::new(),
        },
    }];
    let is_waiting = |event: &IssueEvent| matches!(event, IssueEvent::Looked { waiting, .. } if *waiting == waits);
    assert!(events.iter().any(is_waiting), "{events:?}");
    assert!(
        events.contains(&IssueEvent::Unblocked { number: 1 }),
        "{events:?}"
    );
    assert_eq!(done(&events), [2, 1]);
    assert_eq!(
        project.tracker.status(3),
        "status:ready",
        "it is no specification"
    );
}

#[tokio::test]
async fn several_workers_work_at_the_same_time() {
    // Each run waits for the other's start.
    let project = IssueProject::new(DILIGENT).await;
    project.tracker.add(7, TWO_STEPS, &["spec", "status:ready"]);
    let (_interrupt, interrupted) = watch::channel(true);
    let end = project
        .work_until(7, crate::issues::IssueCaller::Poller, &interrupted)
        .await;
    assert_eq!(end, IssueEnd::Interrupted);
    assert_eq!(project.tracker.status(7), "status:ready");
    let events = poll(&project, 1, &[7]).await;
    assert_eq!(done(&events), [7]);
}

#[tokio::test]
async fn polling_ends_at_its_timeout() {
    let project = IssueProject::new(DILIGENT).await;
    let front_end = Arc::new(RecordingFrontEnd::default());
    let options = PollOptions {
        interval: Duration::from_mins(10),
        timeout: Some(Duration::from_millis(10)),
        workers: 1,
        run: options(),
    };
    let (_stop, interrupted) = watch::channel(false);
    let polled = poll_issues(project.repository.clone(), options, front_end, interrupted);
    assert_eq!(Box::pin(polled).await.unwrap(), PollEnd::TimedOut);
}

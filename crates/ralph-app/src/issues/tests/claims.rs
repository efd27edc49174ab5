use std::sync::atomic::Ordering;

use ralph_core::spec::IssueStatus;
use tokio::sync::watch;

use super::fixture::{DILIGENT, IssueProject, RecordingFrontEnd, TWO_STEPS, options};
use crate::issues::claim_record::ClaimRecord;
use crate::issues::dependencies::KnownIssues;
use crate::issues::settle::unblock_ready;
use crate::issues::{IssueCaller, IssueEnd, work_on_issue};

const READY: [&str; 2] = ["spec", "status:ready"];

/// Changes the labels of an issue besides `spec`.
fn relabel(project: &IssueProject, number: u64, status: &str) {
    let labels = vec!["spec".to_owned(), status.to_owned()];
    project.tracker.lock().get_mut(&number).unwrap().labels = labels;
}

fn run_count(project: &IssueProject) -> usize {
    let state = project.repository.app.state_dir().unwrap();
    state.runs().unwrap().len()
}

#[tokio::test]
async fn a_claim_without_a_run_starts_a_new_one() {
    let script = "cat >/dev/null\ntest -e /nowhere && exit 0\n".to_owned()
        + "sed -i '/^### Step 1/s/$/ [blocked: no key]/' .ralph/spec.md\n";
    let project = IssueProject::new(&script).await;
    project.tracker.add(7, TWO_STEPS, &READY);
    let end = project.work(7, IssueCaller::Poller).await;
    assert!(matches!(end, IssueEnd::NeedsAttention { .. }), "{end:?}");
    assert_eq!(run_count(&project), 1);
    // Another process claims the edited issue, and dies before its run exists.
    relabel(&project, 7, "status:in-progress");
    let records = &project.repository.records;
    let claim = ClaimRecord::new(None, None);
    records.store_claim(7, &claim).unwrap();
    let end = project.work(7, IssueCaller::Poller).await;
    assert!(matches!(end, IssueEnd::NeedsAttention { .. }), "{end:?}");
    assert_eq!(
        run_count(&project),
        2,
        "the earlier run is not settled again"
    );
    assert_eq!(records.load_claim(7).unwrap(), None);
    // Without a claim of this machine, another one works on it.
    relabel(&project, 7, "status:in-progress");
    let end = project.work(7, IssueCaller::Person).await;
    assert!(matches!(end, IssueEnd::Refused(_)), "{end:?}");
    assert_eq!(project.tracker.status(7), "status:in-progress");
}

#[tokio::test]
async fn a_removal_without_a_response_is_continued() {
    let project = IssueProject::new(DILIGENT).await;
    project.tracker.add(7, TWO_STEPS, &READY);
    project.tracker.loses_removal.store(true, Ordering::SeqCst);
    let front_end = RecordingFrontEnd::default();
    let (_interrupt, interrupted) = watch::channel(false);
    let (options, repository) = (options(), (&project.repository, 7));
    let work = work_on_issue(
        repository,
        IssueCaller::Poller,
        &options,
        &front_end,
        interrupted,
    );
    let lost = Box::pin(work).await;
    assert!(lost.is_err(), "{lost:?}");
    assert_eq!(project.tracker.status(7), "status:in-progress");
    let end = project.work(7, IssueCaller::Poller).await;
    assert!(matches!(end, IssueEnd::Done { .. }), "{end:?}");
}

#[tokio::test]
async fn the_claim_of_another_machine_ends_an_uncertain_one() {
    let project = IssueProject::new(DILIGENT).await;
    let other = IssueProject::with_tracker(DILIGENT, project.tracker.clone()).await;
    project
        .tracker
        .add(7, TWO_STEPS, &["spec", "status:in-progress"]);
    let claim = ClaimRecord::new(None, None);
    project.repository.records.store_claim(7, &claim).unwrap();
    let winner = ClaimRecord::new(None, None).sentence();
    let comment = crate::issues::comments::comment_status(&other.repository, 7, &winner);
    comment.await.unwrap();
    let end = project.work(7, IssueCaller::Poller).await;
    assert!(matches!(end, IssueEnd::Refused(_)), "{end:?}");
    assert_eq!(project.repository.records.load_claim(7).unwrap(), None);
}

#[tokio::test]
async fn an_issue_of_another_process_is_refused_and_stays() {
    let project = IssueProject::new(DILIGENT).await;
    project.tracker.add(7, TWO_STEPS, &READY);
    let lock = project.repository.records.lock(7).unwrap();
    assert!(lock.is_some());
    let end = project.work(7, IssueCaller::Poller).await;
    let IssueEnd::Refused(error) = end else {
        panic!("{end:?}");
    };
    assert!(error.to_string().contains("another process"), "{error}");
    assert_eq!(project.tracker.status(7), "status:ready");
    drop(lock);
    relabel(&project, 7, "status:blocked");
    let end = project.work(7, IssueCaller::Poller).await;
    assert!(matches!(end, IssueEnd::Refused(_)), "{end:?}");
}

#[tokio::test]
async fn an_issue_is_unblocked_once() {
    let project = IssueProject::new(DILIGENT).await;
    project
        .tracker
        .add(7, TWO_STEPS, &["spec", "status:blocked"]);
    let old = project.tracker.lock().values().cloned().collect();
    *project.tracker.old_list.lock().unwrap() = Some(old);
    // Another process has unblocked and claimed it since.
    relabel(&project, 7, "status:in-progress");
    let front_end = RecordingFrontEnd::default();
    let mut known = KnownIssues::default();
    unblock_ready(&project.repository, &mut known, &front_end)
        .await
        .unwrap();
    assert_eq!(project.tracker.status(7), "status:in-progress");
    assert!(front_end.events().is_empty());
    relabel(&project, 7, "status:blocked");
    unblock_ready(&project.repository, &mut known, &front_end)
        .await
        .unwrap();
    assert_eq!(project.tracker.status(7), "status:ready");
    let (from, to) = (IssueStatus::Blocked, IssueStatus::Ready);
    let again = project.repository.transition(7, from, to).await;
    assert!(!again.unwrap());
}

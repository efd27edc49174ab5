use ralph_core::spec::{SpecDocument, StepMark};
use tokio::sync::watch;

use super::fixture::{DILIGENT, IssueProject, RecordingFrontEnd, TWO_STEPS, options, wait_until};
use crate::issues::{IssueCaller, IssueEnd, work_on_issue};

const READY: [&str; 2] = ["spec", "status:ready"];

#[tokio::test]
async fn an_issue_is_worked_on_until_its_steps_are_done() {
    let project = IssueProject::new(DILIGENT).await;
    project.tracker.add(7, TWO_STEPS, &READY);
    let end = project.work(7, IssueCaller::Poller).await;
    let IssueEnd::Done { pull: Some(pull) } = &end else {
        panic!("{end:?}");
    };
    assert_eq!(project.tracker.status(7), "status:done");
    let body = project.tracker.body(7);
    let document = SpecDocument::parse(&body);
    for step in document.steps() {
        assert_eq!(step.mark, StepMark::Done, "{body}");
        let note = format!(
            "Chose the name {}.txt, as @\u{200b}octocat wants",
            step.number
        );
        assert_eq!(step.notes, [note]);
    }
    assert!(
        body.contains("Conventions: tabs"),
        "the agent cannot change the text: {body}"
    );
    let comment = project.tracker.comment_on(7, "issue-status").unwrap();
    assert!(
        comment.starts_with("**Done**") && comment.contains(pull.as_str()),
        "{comment}"
    );
    assert_eq!(project.tracker.comment_count(7), 1);
    assert_eq!(
        project.git(&[
            "ls-tree",
            "--name-only",
            "feat/files",
            "--",
            "1.txt",
            "2.txt"
        ]),
        "1.txt\n2.txt\n"
    );
    let pull: serde_json::Value =
        serde_json::from_slice(&std::fs::read(pull.trim_start_matches("file://")).unwrap())
            .unwrap();
    assert!(
        pull["body"].as_str().unwrap().starts_with("Closes #7\n"),
        "{pull}"
    );
    assert_no_sandbox(&project);
    assert_eq!(
        project.work(7, IssueCaller::Person).await,
        IssueEnd::AlreadyDone
    );
}

fn assert_no_sandbox(project: &IssueProject) {
    let state = project.repository.app.state_dir().unwrap();
    let sandboxes = std::fs::read_dir(
        state
            .run(&state.runs().unwrap()[0])
            .root()
            .join("../../sandboxes"),
    );
    let left: Vec<_> = sandboxes
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn an_issue_that_cannot_start_says_why() {
    let project = IssueProject::new(DILIGENT).await;
    let cycle = |on: u64| format!("branch: a\ndepends: [{on}]\n### Step 1: x\n");
    project.tracker.add(1, "### Step 1: x\n", &READY);
    project.tracker.add(2, &cycle(3), &READY);
    project
        .tracker
        .add(3, &cycle(2), &["spec", "status:blocked"]);
    project.tracker.add(4, &cycle(1), &READY);
    project.tracker.add(5, &cycle(99), &READY);
    for (number, status, words) in [
        (
            1,
            "status:needs-attention",
            "no branch is given — start the issue with a line `branch: NAME`",
        ),
        (
            2,
            "status:needs-attention",
            "the issue waits for itself: #2 → #3 → #2",
        ),
        (
            4,
            "status:blocked",
            "waits until #1 has the label `status:done`",
        ),
        (
            5,
            "status:blocked",
            "This repository has no issue #99: correct `depends`",
        ),
    ] {
        let end = project.work(number, IssueCaller::Poller).await;
        assert!(
            matches!(end, IssueEnd::NeedsAttention { .. } | IssueEnd::Blocked(_)),
            "{end:?}"
        );
        assert_eq!(project.tracker.status(number), status, "{number}");
        let comment = project.tracker.comment_on(number, "issue-status").unwrap();
        assert!(comment.contains(words), "{comment}");
    }
    assert!(
        project
            .repository
            .app
            .state_dir()
            .unwrap()
            .runs()
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn issues_of_others_and_closed_ones_are_not_touched() {
    let project = IssueProject::new(DILIGENT).await;
    for number in [1, 2, 3] {
        project.tracker.add(number, TWO_STEPS, &READY);
    }
    project.tracker.lock().get_mut(&1).unwrap().author = "mallory".into();
    project.tracker.lock().get_mut(&2).unwrap().open = false;
    project.tracker.lock().get_mut(&3).unwrap().labels = vec!["status:in-progress".into()];
    for (number, caller, why) in [
        (
            1,
            IssueCaller::Poller,
            "its author `mallory` is not one of `issues.authors`",
        ),
        (2, IssueCaller::Person, "a closed issue is not worked on"),
        (3, IssueCaller::Person, "another machine works on it"),
        (4, IssueCaller::Person, "the number does not exist"),
    ] {
        let IssueEnd::Refused(error) = project.work(number, caller).await else {
            panic!("{number}");
        };
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(project.tracker.status(1), "status:ready");
    assert_eq!(project.tracker.comment_count(1), 0);
    // A person who starts it has decided.
    let end = project.work(1, IssueCaller::Person).await;
    assert!(matches!(end, IssueEnd::Done { .. }), "{end:?}");
}

#[tokio::test]
async fn only_one_of_two_machines_wins() {
    let script = format!("{DILIGENT}\necho x >>\"$(git rev-parse --git-path won)\"\n");
    let one = IssueProject::new(&script).await;
    let two = IssueProject::with_tracker(&script, one.tracker.clone()).await;
    one.tracker.add(7, TWO_STEPS, &READY);
    let (first, second) = tokio::join!(
        one.work(7, IssueCaller::Poller),
        two.work(7, IssueCaller::Poller)
    );
    let refused = [&first, &second]
        .into_iter()
        .filter(|end| matches!(end, IssueEnd::Refused(_)))
        .count();
    let done = [&first, &second]
        .into_iter()
        .filter(|end| matches!(end, IssueEnd::Done { .. }))
        .count();
    assert_eq!((done, refused), (1, 1), "{first:?} {second:?}");
    assert_eq!(one.tracker.status(7), "status:done");
}

#[tokio::test]
async fn an_interrupted_issue_is_ready_again_and_continues() {
    // The agent interrupts the work in its first session, after its commit.
    let project = IssueProject::new(DILIGENT).await;
    project.tracker.add(7, TWO_STEPS, &READY);
    let (interrupt, interrupted) = watch::channel(false);
    let tracker = project.tracker.clone();
    let stop = async move {
        // The first step is written back while the second one is being worked on.
        wait_until("a step is written back", || {
            tracker.body(7).contains("[done]")
        })
        .await;
        interrupt.send_replace(true);
        interrupt
    };
    let (end, _interrupt) = tokio::join!(
        project.work_until(7, IssueCaller::Poller, &interrupted),
        stop
    );
    if end == IssueEnd::Interrupted {
        assert_eq!(project.tracker.status(7), "status:ready");
    }
    let end = project.work(7, IssueCaller::Person).await;
    assert!(
        matches!(end, IssueEnd::Done { .. } | IssueEnd::AlreadyDone),
        "{end:?}"
    );
    assert_eq!(
        project
            .repository
            .app
            .state_dir()
            .unwrap()
            .runs()
            .unwrap()
            .len(),
        1,
        "the same run continues"
    );
    assert_eq!(project.tracker.status(7), "status:done");
}

#[tokio::test]
async fn a_blocked_step_needs_attention_and_an_edit_starts_a_new_run() {
    let script = "cat >/dev/null\nif grep -q 'use sqlite' .ralph/spec.md; then\n".to_owned()
        + DILIGENT
        + "\nelse\nsed -i '/^### Step 1/s/$/ [blocked: no database @octocat]/' .ralph/spec.md\nfi\n";
    let project = IssueProject::new(&script).await;
    project.tracker.add(7, TWO_STEPS, &READY);
    let end = project.work(7, IssueCaller::Poller).await;
    let IssueEnd::NeedsAttention { reason } = end else {
        panic!("{end:?}");
    };
    assert!(reason.contains("step 1: no database"), "{reason}");
    assert_eq!(project.tracker.status(7), "status:needs-attention");
    let body = project.tracker.body(7);
    assert!(
        body.contains("### Step 1: One is there [blocked: no database @\u{200b}octocat]"),
        "{body}"
    );
    // The user answers by an edit.
    let edited = body.replace("Conventions: tabs", "Conventions: tabs, use sqlite");
    project.tracker.add(7, &edited, &READY);
    let end = project.work(7, IssueCaller::Poller).await;
    assert!(matches!(end, IssueEnd::Done { .. }), "{end:?}");
    let body = project.tracker.body(7);
    assert!(body.contains("> Was blocked: no database"), "{body}");
    assert!(body.contains("tabs, use sqlite"), "{body}");
}

#[tokio::test]
async fn an_edit_during_the_run_stays() {
    let project = IssueProject::new(DILIGENT).await;
    project.tracker.add(7, TWO_STEPS, &READY);
    let tracker = project.tracker.clone();
    let edit = async move {
        let is_started = || {
            let comment = tracker.comment_on(7, "issue-status");
            comment.is_some_and(|text| text.starts_with("**In progress**"))
        };
        wait_until("the work has started", is_started).await;
        let mut issues = tracker.lock();
        let issue = issues.get_mut(&7).unwrap();
        issue.body = issue
            .body
            .replace("## Rules", "### Step 3: Three is there\n\n## Rules");
    };
    let (end, ()) = tokio::join!(project.work(7, IssueCaller::Poller), edit);
    let IssueEnd::NeedsAttention { reason } = end else {
        panic!("{end:?}");
    };
    assert!(reason.contains("step 3 was added"), "{reason}");
    let body = project.tracker.body(7);
    let marks: Vec<_> = SpecDocument::parse(&body)
        .steps()
        .iter()
        .map(|step| step.mark.clone())
        .collect();
    assert_eq!(
        marks,
        [StepMark::Done, StepMark::Done, StepMark::Open],
        "{body}"
    );
    assert_eq!(
        project.tracker.comment_count(7),
        2,
        "one with the status, one about the edit"
    );
    // The next run starts from the base branch, so it does all steps again.
    project.tracker.lock().get_mut(&7).unwrap().labels = READY.map(str::to_owned).into();
    let end = project.work(7, IssueCaller::Poller).await;
    assert!(matches!(end, IssueEnd::Done { .. }), "{end:?}");
    let files = project.git(&["ls-tree", "--name-only", "feat/files-v2"]);
    for file in ["1.txt", "2.txt", "3.txt"] {
        assert!(files.contains(file), "{file} is missing: {files}");
    }
    let body = project.tracker.body(7);
    assert_eq!(body.matches("[done]").count(), 3, "{body}");
}

#[tokio::test]
async fn a_new_run_opens_the_marks_of_an_earlier_one() {
    // The agent does nothing but report an obstacle.
    let script = "cat >/dev/null\nsed -i '/^### Step 2/s/$/ [blocked: no key]/' .ralph/spec.md\n";
    let project = IssueProject::new(script).await;
    let marked = TWO_STEPS.replace("One is there", "One is there [done]");
    project.tracker.add(7, &marked, &READY);
    let end = project.work(7, IssueCaller::Poller).await;
    assert!(matches!(end, IssueEnd::NeedsAttention { .. }), "{end:?}");
    let body = project.tracker.body(7);
    assert!(!body.contains("[done]"), "{body}");
}

#[tokio::test]
async fn a_box_that_the_clean_room_reopens_loses_its_mark() {
    // The check needs a file that git ignores, so it succeeds in the sandbox only.
    let script = "cat >/dev/null\necho ignored.txt >.gitignore\ntouch ignored.txt\ngit add .gitignore\n\
                  git -c user.name=a -c user.email=a@localhost commit --quiet --message 'Ignore it'\n\
                  sed -i 's/^### Step 1.*/& [done]/' .ralph/spec.md\n";
    let project = IssueProject::new(script).await;
    let one = "branch: a/b\n### Step 1: One\n\nVerify: `test -e ignored.txt`\n";
    project.tracker.add(7, one, &READY);
    let mut options = options();
    options.limits.max_iterations = Some(1);
    let front_end = RecordingFrontEnd::default();
    let (_interrupt, interrupted) = watch::channel(false);
    let (repository, caller) = ((&project.repository, 7), IssueCaller::Poller);
    let work = work_on_issue(repository, caller, &options, &front_end, interrupted);
    let end = Box::pin(work).await.unwrap();
    assert!(matches!(end, IssueEnd::Failed { .. }), "{end:?}");
    let body = project.tracker.body(7);
    assert!(!body.contains("[done]"), "{body}");
}

#[tokio::test]
async fn edits_between_a_read_and_a_write_stay() {
    let project = IssueProject::new(DILIGENT).await;
    project.tracker.add(7, TWO_STEPS, &READY);
    let edits: Vec<String> = (0..6).map(|at| format!("\nKeep {at}.\n")).collect();
    *project.tracker.edits.lock().unwrap() = edits.clone();
    let end = project.work(7, IssueCaller::Poller).await;
    assert!(matches!(end, IssueEnd::Done { .. }), "{end:?}");
    let body = project.tracker.body(7).replace("\r\n", "\n");
    for edit in &edits {
        assert!(body.contains(edit.trim()), "{edit} is lost: {body}");
    }
    assert_eq!(body.matches("[done]").count(), 2, "{body}");
    assert!(project.tracker.edits.lock().unwrap().is_empty());
}
